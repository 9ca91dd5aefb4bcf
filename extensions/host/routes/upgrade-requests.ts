import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** Whether a request is a WebSocket handshake. RFC 6455, 4.1 allows it no body. */
export function isWebSocketHandshake({ headers }: IncomingMessage): boolean {
  const hasBody = 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) !== 0;
  return headers.upgrade?.toLowerCase() === 'websocket' && !hasBody;
}

/**
 * Makes a server emit `upgrade` for WebSockets only. Node 24.9 and later call `shouldUpgradeCallback`. From Node 25
 * the server reads the body of other upgrade requests, so `replayWithoutUpgrade` would be too late.
 */
export function upgradeWebSocketsOnly(server: Server): void {
  Object.assign(server, { shouldUpgradeCallback: isWebSocketHandshake });
}

/**
 * Returns a request for another protocol to the server, without its `Upgrade`, as RFC 9110, 7.8 allows. Needed before
 * Node 24.9, whose `node:http` reads no body of an upgrade request. Many clients request HTTP/2 each time (`Upgrade:
 * h2c`).
 * @param head bytes received after the headers
 */
export function replayWithoutUpgrade(
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

/** An `Upgrade` header only takes effect with this word in `Connection`. */
function withoutUpgrade(connection: string): string {
  const words = connection.split(',').map((word) => word.trim());
  return words.filter((word) => word.toLowerCase() !== 'upgrade').join(', ');
}
