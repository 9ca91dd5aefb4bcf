import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Signal } from '../signals.ts';

/**
 * Takes connections and never says a word, as a server that hangs, or a proxy that has lost what is behind it. Whoever
 * connects is not refused, and learns nothing.
 */
export class SilentPort {
  /** Each connection that came. */
  readonly came = new Signal<Socket>('a connection that gets no answer');
  readonly #server: Server;

  private constructor() {
    this.#server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on('error', () => undefined);
      this.came.send(socket);
    });
  }

  /** Begins to listen on the loopback interface; `port` 0: at any that is free. */
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

  /** Makes room for another that listens here. The connections that came stay as they are, without an end. */
  leave(): void {
    this.#server.close();
  }

  /** Ends everything. */
  close(): void {
    this.#server.close();
    for (const socket of this.came.values) socket.destroy();
  }
}
