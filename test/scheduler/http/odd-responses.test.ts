import { expect } from 'chai';
import type { Socket } from 'node:net';
import { Signal } from '../../support/signals.ts';
import { bothCallers, callersHarness } from './callers.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Unusual but valid responses of real servers. */
const odd: readonly (readonly [what: string, answer: string, status: number, text: string])[] = [
  ['100 Continue that nobody asked for', `HTTP/1.1 100 Continue\r\n\r\n${ok}`, 200, 'ok'],
  [
    'several 1xx, also ones that no RFC names',
    'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nContent-Length: 5\r\n\r\n' +
      `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 Soon\r\n\r\n${ok}`,
    200,
    'ok',
  ],
  ['204 with a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 10\r\n\r\n', 204, ''],
  ['204 with a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok', 204, ''],
  ['204 in chunks', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n', 204, ''],
  ['lines that end without CR', ok.replaceAll('\r\n', '\n'), 200, 'ok'],
  ['a header over two lines', ok.replace('\r\nC', '\r\nX-A: one\r\n two\r\nC'), 200, 'ok'],
  ['no reason phrase', ok.replace(' OK', ''), 200, 'ok'],
  ['empty lines before the status', `\r\n\r\n${ok}`, 200, 'ok'],
  ['headers of 40 KiB', ok.replace('\r\nC', `\r\nX-A: ${'a'.repeat(40_000)}\r\nC`), 200, 'ok'],
  [
    'both a length and chunks',
    'HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    200,
    'ok',
  ],
  [
    'bytes behind an answer that closes',
    'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nokmore',
    200,
    'ok',
  ],
];

describe('an unusual response', () => {
  const { server, caller } = callersHarness();

  for (const name of bothCallers) {
    for (const [what, answer, status, text] of odd) {
      it(`to ${name} with ${what} is accepted, and the request is sent once`, async () => {
        const { origin, server: raw } = await server((_, socket) => socket.write(answer));
        const outcome = await caller(name).call(origin, { method: 'POST', body: 'x' });
        expect(outcome).to.include({ status, text, error: null });
        expect(raw.requests).to.have.lengthOf(1);
      });
    }

    it(`to ${name} without a length ends with the connection`, async () => {
      const { origin } = await server((_, socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nok'));
      expect(await caller(name).call(origin)).to.include({ status: 200, text: 'ok' });
    });

    it(`to ${name} without a request closes the connection, and is not taken for the next response`, async () => {
      const asked = new Signal<Socket>('a request');
      const closed = new Signal<Socket>('the end of a connection');
      const { origin } = await server((_, socket) => {
        socket.once('close', () => closed.send(socket));
        if (asked.values.length < 2) asked.send(socket);
        else socket.write(ok.replace('\r\n\r\nok', '\r\n\r\nhi'));
      });
      const client = caller(name);
      const calls = [client.call(origin), client.call(origin)];
      const first = await asked.wait();
      const second = await asked.wait((socket) => socket !== first);
      first.write(ok);
      await Promise.race(calls);
      second.write(ok);
      await Promise.all(calls);
      second.write(ok);
      expect((await closed.wait()) === second).to.equal(true);
      expect(await client.call(origin)).to.include({ text: 'hi' });
    });
  }

  it('with 304 and a length is accepted if it is expected', async () => {
    const answer = 'HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: "a"\r\n\r\n';
    const { origin } = await server((_, socket) => socket.write(answer));
    const { result } = await caller('http.request').call(origin, { expect_status: 304 });
    expect(result).to.deep.include({ status: 304, body: null });
  });

  it('with 304 and a length fails a webhook because of its status', async () => {
    const answer = 'HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n';
    const { origin } = await server((_, socket) => socket.write(answer));
    expect(await caller('a webhook').call(origin)).to.include({ status: 304, error: null });
  });

  it('with an unrequested 101 fails because of its status', async () => {
    const answer = 'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n';
    const { origin } = await server((_, socket) => socket.write(answer));
    const { error } = await caller('http.request').call(origin);
    expect(error).to.match(/answered 101$/);
    expect(await caller('a webhook').call(origin)).to.include({ status: 101 });
  });

  it('returns several Set-Cookie as a list, and one as a string', async () => {
    const cookies = ['a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT', 'b=2'];
    const { origin } = await server(({ line }, socket) => {
      const set = cookies.slice(0, line.includes('/two') ? 2 : 1);
      const more = set.map((each) => `Set-Cookie: ${each}\r\n`).join('');
      socket.write(ok.replace('Content', `${more}X-A: 1\r\nX-A: 2\r\nContent`));
    });
    const client = caller('http.request');
    const headersAt = async (path: string): Promise<unknown> =>
      (await client.call(origin + path)).result['headers'];
    expect(await headersAt('/two')).to.deep.include({ 'set-cookie': cookies, 'x-a': '1, 2' });
    expect(await headersAt('/one')).to.deep.include({ 'set-cookie': cookies[0] });
  });
});
