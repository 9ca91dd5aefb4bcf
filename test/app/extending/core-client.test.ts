import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { LoopbackCore } from '../../../app/extending/core-client.ts';
import { ExtensionError } from '../../../extensions/contract.ts';
import { deferred } from '../../support/signals.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

describe("an extension's client of the service", () => {
  const clock = new VirtualClock();
  const core = new LoopbackCore(clock, undefined, {
    announce: () => ({ headers: {}, over: () => {} }),
  });
  let server: Server;
  let answer: RequestListener;
  before(async () => {
    server = createServer((request, response) => answer(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    core.listensAt('127.0.0.1', (server.address() as AddressInfo).port, false);
  });
  after(() => {
    core.close();
    server.close();
    server.closeAllConnections();
  });

  const fault = async (): Promise<unknown> => {
    try {
      return await core.request('GET', '/', {});
    } catch (error) {
      return error;
    }
  };

  it('reports the service as unavailable if a response is truncated or missing', async () => {
    const cut: readonly RequestListener[] = [
      (_request, response) => response.destroy(),
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 10 });
        response.write('{"a":', () => response.destroy());
      },
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"a":');
      },
    ];
    for (const each of cut) {
      answer = each;
      const error = await fault();
      expect(error).to.be.instanceOf(ExtensionError);
      expect(error).to.include({ code: 'unavailable' });
    }
  });

  it('reports the abort of its own signal if that ends the wait for a response', async () => {
    const stop = new AbortController();
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': 10 });
      response.write('x', () => stop.abort());
    };
    const error: unknown = await core
      .request('GET', '/', { signal: stop.signal })
      .catch((each: unknown) => each);
    expect(error).to.include({ name: 'AbortError' });
  });

  /**
   * A response that continues as long as somebody reads it.
   * @returns resolves when the reader disconnects
   */
  function endless(contentType: string, piece: string): Promise<void> {
    return new Promise((left) => {
      answer = (_request, response) => {
        const writeMore = (): void => {
          while (!response.destroyed && response.write(piece));
        };
        response.writeHead(200, { 'content-type': contentType });
        response.on('drain', writeMore).once('close', left);
        writeMore();
      };
    });
  }

  it('rejects a live stream at once, naming it, and closes it', async () => {
    for (const type of ['text/event-stream; charset=utf-8', 'text/event-stream']) {
      const left = endless(type, ': heartbeat\n\n');
      const error = await fault();
      expect(error).to.be.instanceOf(ExtensionError);
      expect(error).to.deep.include({ code: 'bad_request' });
      expect(String(error)).to.include('GET / is a live stream');
      await left;
    }
  });

  it('reports the limit if a response exceeds it, and reads no more', async () => {
    const left = endless('text/plain', 'x'.repeat(1_000_000));
    const error = await fault();
    expect(error).to.be.instanceOf(ExtensionError);
    expect(error).to.deep.include({
      code: 'payload_too_large',
      message: 'the response to GET / is over 67108864 bytes',
      details: { field: 'answer', limit: 67_108_864 },
    });
    await left;
  });

  it('reports the timeout if a response takes longer, however much of it arrives', async () => {
    const begun = deferred<ServerResponse>();
    const left = deferred();
    answer = (_request, response) => {
      response.once('close', () => left.resolve());
      response.write('more', () => begun.resolve(response));
    };
    const asked = fault();
    const response = await begun.promise;
    await settle();
    await clock.advance(89_999);
    response.write('more');
    await clock.advance(1);
    const error = await asked;
    expect(error).to.be.instanceOf(ExtensionError);
    expect(error).to.deep.include({
      code: 'unavailable',
      message: 'GET / did not complete within 90 s',
      details: { component: 'core', limit_seconds: 90 },
    });
    await left.promise;
    expect(clock.pending).to.equal(0);
  });

  it('rejects a body with a number that JSON or the service would change, and one that is not JSON', async () => {
    answer = (_request, response) => response.end();
    for (const [body, field] of [
      [{ payload: { n: Number.NaN } }, 'body.payload.n'],
      [{ list: [1, 2 ** 60] }, 'body.list.1'],
      [() => 1, 'body'],
    ] as const) {
      const sending = core.request('POST', '/', { body });
      const error = await sending.then(() => null).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(ExtensionError);
      expect(error).to.have.nested.property('details.field', field);
    }
  });
});
