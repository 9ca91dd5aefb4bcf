import { expect } from 'chai';
import type { RawResponse } from '../../support/raw-server.ts';
import { bothCallers, callersHarness } from './callers.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Closes a connection on its second request, like a server that has just timed it out. */
const closesReused: RawResponse = ({ nth }, socket) =>
  nth === 1 ? void socket.write(ok) : void socket.destroy();

describe('a request over a kept connection that the server closes', () => {
  const { server, caller } = callersHarness();

  for (const name of bothCallers) {
    it(`is sent again by ${name}, over a new connection`, async () => {
      const { origin, server: raw } = await server(closesReused);
      const client = caller(name);
      await client.call(origin);
      expect(await client.call(origin)).to.include({ status: 200, text: 'ok' });
      expect(raw.requests.map(({ connection, nth }) => [connection, nth])).to.deep.equal([
        [1, 1],
        [1, 2],
        [2, 1],
      ]);
      expect(raw.requests[2]?.body).to.equal(raw.requests[1]?.body);
    });

    it(`is not sent a third time by ${name}`, async () => {
      const { origin, server: raw } = await server(({ connection, nth }, socket) =>
        connection === 1 && nth === 1 ? void socket.write(ok) : void socket.destroy(),
      );
      const client = caller(name);
      await client.call(origin);
      expect((await client.call(origin)).error).to.be.a('string');
      expect(raw.requests).to.have.lengthOf(3);
    });

    it(`is not sent again by ${name} once a response has begun`, async () => {
      const { origin, server: raw } = await server(({ nth }, socket) =>
        nth === 1 ? void socket.write(ok) : void socket.end('HTTP/1.1 2'),
      );
      const client = caller(name);
      await client.call(origin);
      expect((await client.call(origin)).error).to.be.a('string');
      expect(raw.requests).to.have.lengthOf(2);
    });

    it(`is not sent again by ${name} if the connection was new`, async () => {
      const { origin, server: raw } = await server((_, socket) => void socket.destroy());
      expect((await caller(name).call(origin)).error).to.be.a('string');
      expect(raw.requests).to.have.lengthOf(1);
    });
  }

  const sentAgain: readonly (readonly [method: string, headers: object, times: number])[] = [
    ['PUT', { 'idempotency-key': '' }, 3],
    ['DELETE', { 'idempotency-key': '' }, 3],
    ['POST', {}, 3],
    ['PATCH', { 'idempotency-key': 'own' }, 3],
    ['POST', { 'idempotency-key': '' }, 2],
    ['PATCH', { 'idempotency-key': '' }, 2],
  ];
  for (const [method, headers, times] of sentAgain) {
    const key = JSON.stringify(headers);
    it(`is sent ${times === 3 ? 'again' : 'once'} as ${method} with ${key}`, async () => {
      const { origin, server: raw } = await server(closesReused);
      const client = caller('http.request');
      await client.call(origin);
      const { status } = await client.call(origin, { method, headers, body: 'x' });
      expect(status).to.equal(times === 3 ? 200 : null);
      expect(raw.requests).to.have.lengthOf(times);
    });
  }

  it('is not repeated to another origin without its key', async () => {
    const there = await server(closesReused);
    const here = await server((_, socket) => {
      const location = `Location: ${there.origin}\r\n`;
      socket.write(`HTTP/1.1 307 There\r\n${location}Content-Length: 0\r\n\r\n`);
    });
    const client = caller('http.request');
    await client.call(there.origin);
    expect((await client.call(here.origin, { method: 'POST' })).status).to.equal(null);
    expect(there.server.requests).to.have.lengthOf(2);
  });
});
