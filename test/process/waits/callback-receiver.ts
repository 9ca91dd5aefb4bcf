import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Signal } from '../../support/signals.ts';

/** The other side of a step that waits for a callback: it keeps the tokens that it is sent. */
export class CallbackReceiver {
  readonly tokens = new Signal<string>('tokens of callbacks');
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<CallbackReceiver> {
    const receiver = new CallbackReceiver(
      createServer((request, response) => {
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
    const { port } = this.#server.address() as AddressInfo;
    const body = { token: '${callback.token}' };
    const request = { method: 'POST', url: `http://127.0.0.1:${port}/`, body };
    return { id: 'called', uses: 'http.request', with: request, wait_for: 'callback' };
  }

  async close(): Promise<void> {
    await new Promise((closed) => {
      this.#server.close(closed);
      this.#server.closeAllConnections();
    });
  }
}
