import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Signal } from '../signals.ts';

/**
 * Accepts connections and never sends anything, like a hanging server, or a proxy that has lost its
 * backend.
 */
export class SilentPort {
  /** Each accepted connection. */
  readonly came = new Signal<Socket>('a connection that gets no response');
  readonly #server: Server;

  private constructor() {
    this.#server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on('error', () => undefined);
      this.came.send(socket);
    });
  }

  /** Starts to listen on the loopback interface; `port` 0: any free one. */
  static async open(port: number): Promise<SilentPort> {
    const silent = new SilentPort();
    await new Promise<void>((resolve, reject) => {
      silent.#server.once('error', reject);
      silent.#server.listen(port, '127.0.0.1', resolve);
    });
    return silent;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Stops listening, so another can use the port. Existing connections stay open. */
  leave(): void {
    this.#server.close();
  }

  /** Closes everything. */
  close(): void {
    this.#server.close();
    for (const socket of this.came.values) socket.destroy();
  }
}
