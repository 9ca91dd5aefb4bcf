import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { LoopbackCore } from '../../../app/extending/core-client.ts';
import { ExtensionError } from '../../../extensions/contract.ts';

describe("an extension's client of the service", () => {
  const core = new LoopbackCore(undefined);
  let server: Server;
  let answer: RequestListener;
  before(async () => {
    server = createServer((request, response) => answer(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    core.listensAt('127.0.0.1', (server.address() as AddressInfo).port);
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

  it('is told that the service is not there where an answer was cut, or is none', async () => {
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

  it('is told of its own signal where that ends the waiting in the midst of an answer', async () => {
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
});
