import {
  createServer,
  type IncomingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

const CHUNK = 'x'.repeat(64 * 1024);

/** An upstream server with hostile responses. */
export class HostileServer {
  requests = 0;
  lastHeaders: IncomingHttpHeaders = {};
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.requests += 1;
      this.lastHeaders = request.headers;
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://here');
      answer(pathname.slice(1), searchParams, response);
    });
  }

  static async start(): Promise<HostileServer> {
    const started = new HostileServer();
    await new Promise<void>((resolve) => started.#server.listen(0, '127.0.0.1', resolve));
    return started;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Its address, with a final slash. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

function answer(what: string, query: URLSearchParams, response: ServerResponse): void {
  const json = (text: string): void => {
    response.setHeader('content-type', 'application/json');
    response.end(text);
  };
  switch (what) {
    case 'endless': {
      const more = (): void => {
        while (!response.destroyed && response.write(CHUNK));
      };
      response.on('drain', more);
      return more();
    }
    case 'slow':
      // Never ends: the headers and one byte.
      return void response.write('{');
    case 'broken':
      response.setHeader('content-length', '1000');
      response.write('{"a":');
      return void setImmediate(() => response.destroy());
    case 'headers':
      for (let n = 0; n < 100; n += 1) response.setHeader(`x-many-${n}`, 'x'.repeat(100));
      return json('{}');
    case 'loop':
      return void response.writeHead(302, { location: '/loop' }).end();
    case 'redirect':
      return void response.writeHead(302, { location: query.get('to') ?? '/' }).end();
    case 'expression':
      return json(JSON.stringify({ a: '${secrets.TOKEN}', b: '${`1` + `1`}' }));
    case 'prototype':
      return json('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
    default:
      return json('{}');
  }
}
