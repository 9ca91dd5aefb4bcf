import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Signal, deferred } from '../support/signals.ts';

/**
 * The target of pipeline steps: an HTTP server of the test that counts requests by idempotency key.
 */
export class StepServer {
  readonly #server: Server;
  readonly #counts = new Map<string, number>();
  /** Responses to requests for `/held` wait for it. */
  readonly #release = deferred();
  /** Every request for `/held` so far. */
  readonly held = new Signal<string>('requests that are held');

  private constructor() {
    this.#server = createServer((request, response) => {
      const key = String(request.headers['idempotency-key'] ?? 'none');
      const count = (this.#counts.get(key) ?? 0) + 1;
      this.#counts.set(key, count);
      const answer = (): void => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ count }));
      };
      if (request.url === '/held') {
        this.held.send(key);
        void this.#release.promise.then(answer);
      } else {
        request.resume().once('end', answer);
      }
      // A killed client is not an error.
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

  /** A path whose responses are held until {@link release}. */
  get heldUrl(): string {
    return `${this.url}held`;
  }

  /** Responds to held requests, and from now on immediately. */
  release(): void {
    this.#release.resolve();
  }

  /** How often each key was sent. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}
