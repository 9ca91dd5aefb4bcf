import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What steps of pipelines call: an HTTP server of the test's own that counts what comes, by idempotency key. */
export class StepServer {
  readonly #server: Server;
  readonly #counts = new Map<string, number>();

  private constructor() {
    this.#server = createServer((request, response) => {
      const key = String(request.headers['idempotency-key'] ?? 'none');
      const count = (this.#counts.get(key) ?? 0) + 1;
      this.#counts.set(key, count);
      request.resume().once('end', () => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ count }));
      });
      // A killed client is nothing to report.
      request.on('error', () => undefined);
    });
  }

  static async start(): Promise<StepServer> {
    const server = new StepServer();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** How often each key came. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}
