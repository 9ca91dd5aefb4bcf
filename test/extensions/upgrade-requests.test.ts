import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { eventually } from '../support/signals.ts';
import { manifestOf, useHosting } from './hosting.ts';

describe('an upgrade request for a protocol other than WebSocket', () => {
  const hosting = useHosting();
  let socket: Socket;
  let answers = '';

  beforeEach(async () => {
    const module = `export function setup({ routes }) {
      routes.post('/', (request, response) => response.json({ body: request.body }));
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { hostname, port } = new URL((await hosting().start()).url);
    socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    answers = '';
    socket.on('data', (chunk: Buffer) => (answers += chunk.toString()));
  });
  afterEach(() => socket.destroy());

  /** Some clients send all requests like this to detect HTTP/2. */
  const head = (length: number, ...more: readonly string[]): string =>
    [
      'POST /ext/plain/ HTTP/1.1',
      'Host: test',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
      'Authorization: Bearer admin',
      'Content-Type: application/json',
      `Content-Length: ${String(length)}`,
      ...more,
      '',
      '',
    ].join('\r\n');
  const answered = (count: number, body: string): Promise<void> =>
    eventually(() => {
      expect(answers.match(/HTTP\/1.1 200 OK/g)).to.have.lengthOf(count);
      expect(answers.endsWith(`{"body":${body}}`), answers).to.equal(true);
    });

  it('is answered without the upgrade, with its body, and keeps the connection open', async () => {
    socket.write(`${head(7)}{"a":1}`);
    await answered(1, '{"a":1}');
    const large = JSON.stringify('x'.repeat(9_000));
    socket.write(head(large.length, `X-Name: \xfc`));
    socket.write(large);
    await answered(2, large);
  });

  it('is answered without the upgrade if it is a WebSocket handshake with a body', async () => {
    const asked = head(7)
      .replace('Connection: Upgrade, HTTP2-Settings', 'Connection: Upgrade')
      .replace('Upgrade: h2c', 'Upgrade: websocket\r\nSec-WebSocket-Version: 13');
    socket.write(`${asked}{"a":1}`);
    await answered(1, '{"a":1}');
    socket.write(`${asked}{"a":2}`);
    await answered(2, '{"a":2}');
  });
});
