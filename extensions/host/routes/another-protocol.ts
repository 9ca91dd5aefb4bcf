import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/**
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
