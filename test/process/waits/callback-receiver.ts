import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Signal } from '../../support/signals.ts';

/**
 * A server that steps call. It keeps the tokens of callbacks that it receives, and responds to slow requests when a
 * test says so.
 */
export class CallbackReceiver {
  readonly tokens = new Signal<string>('tokens of callbacks');
  readonly slow = new Signal<() => void>('slow requests');
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<CallbackReceiver> {
    const receiver = new CallbackReceiver(
      createServer((request, response) => {
        if (request.url === '/slow') {
          receiver.slow.send(() => void response.end());
          return;
        }
        void text(request).then((body) => {
          receiver.tokens.send((JSON.parse(body) as { readonly token: string }).token);
          response.end();
        });
      }),
    );
    await new Promise<void>((go) => receiver.#server.listen(0, '127.0.0.1', go));
    return receiver;
  }

  /** A step that sends its token here, and waits. */
  get step(): object {
    const request = { method: 'POST', url: this.#url, body: { token: '${callback.token}' } };
    return { id: 'called', uses: 'http.request', with: request, wait_for: 'callback' };
  }

  /** A step that runs until its request in `slow` gets a response. */
  get slowStep(): object {
    return { id: 'slow', uses: 'http.request', with: { url: `${this.#url}slow` } };
  }

  get #url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/`;
  }

  async close(): Promise<void> {
    await new Promise((closed) => {
      this.#server.close(closed);
      this.#server.closeAllConnections();
    });
  }
}
