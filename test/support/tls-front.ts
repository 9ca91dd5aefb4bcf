import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { certificate } from './certificates.ts';

/** Adds TLS in front of a stand-in without it. */
export class TlsFront {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #name: Parameters<typeof certificate>[0];

  private constructor(target: number, name: Parameters<typeof certificate>[0]) {
    const { cert, key } = certificate(name);
    this.#name = name;
    const options = { cert: readFileSync(cert), key: readFileSync(key), ALPNProtocols: ['h2'] };
    this.#server = createServer(options, (secure) => {
      const plain = connect(target, '127.0.0.1');
      for (const [one, other] of [
        [secure, plain],
        [plain, secure],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.once('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
    // Includes connections that never become secure.
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    // Clients that do not trust the certificate, or do not speak TLS, break the connection.
    this.#server.on('tlsClientError', () => {});
  }

  /** Listens on a free port. @param target the port of the stand-in */
  static async start(target: number, name: 'one' | 'two' = 'one'): Promise<TlsFront> {
    const front = new TlsFront(target, name);
    front.#server.listen(0, '127.0.0.1');
    await once(front.#server, 'listening');
    return front;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string')
      throw new Error('the front does not listen');
    return address.port;
  }

  /** A file with its certificate, which is its own authority. */
  get authority(): string {
    return certificate(this.#name).cert;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
