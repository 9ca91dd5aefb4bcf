import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Whether a request opens a WebSocket. One with a body opens none: RFC 6455, 4.1 gives the handshake no body, and what
 * would follow it on the connection is not clear.
 */
export function asksForWebSocket({ headers }: IncomingMessage): boolean {
  const hasBody = 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) !== 0;
  return headers.upgrade?.toLowerCase() === 'websocket' && !hasBody;
}

/**
 * Makes a server emit `upgrade` for WebSockets alone. Since Node 24.9 a server asks `shouldUpgradeCallback`, and since 25
 * it reads the body of any request that asks for another protocol, so that `asIfNotAsked` would come too late. Older
 * versions do not ask.
 */
export function upgradeWebSocketsOnly(server: Server): void {
  Object.assign(server, { shouldUpgradeCallback: asksForWebSocket });
}

/**
 * For versions of Node before 24.9 (see `upgradeWebSocketsOnly`).
 *
 * Hands a request that asks for a protocol which is not spoken here back to the server, as one that has not asked: whoever
 * asks may be answered so (RFC 9110, 7.8). `node:http` reads no body of a request that asks, and many clients ask for
 * HTTP/2 with each request (`Upgrade: h2c`).
 *
 * @param head what came behind its headers
 */
export function asIfNotAsked(
  server: Server,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const { method = '', url = '', httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const value = rawHeaders[at + 1] ?? '';
    lines.push(`${name}: ${name.toLowerCase() === 'connection' ? withoutUpgrade(value) : value}`);
  }
  const bytes = Buffer.from([...lines, '', ''].join('\r\n'), 'latin1');
  socket.unshift(Buffer.concat([bytes, head]));
  server.emit('connection', socket);
}

/** By this word alone the header `Upgrade` counts. */
function withoutUpgrade(connection: string): string {
  const words = connection.split(',').map((word) => word.trim());
  return words.filter((word) => word.toLowerCase() !== 'upgrade').join(', ');
}
