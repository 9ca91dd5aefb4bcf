import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A request as received. */
export interface RawRequest {
  /** The number of its connection, from 1. */
  readonly connection: number;
  /** Its number on its connection, from 1. */
  readonly nth: number;
  /** `GET / HTTP/1.1`. */
  readonly line: string;
  /** Names are in lower case. Of several headers with the same name, this has the last one. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Responds to a request with raw bytes, or does something else to the connection. */
export type RawResponse = (request: RawRequest, socket: Socket) => void;

/**
 * A server that writes a test's bytes unchanged, for responses that server libraries would prevent.
 * It reads requests with a `Content-Length` or without a body.
 */
export class RawServer {
  readonly requests: RawRequest[] = [];
  readonly sockets = new Set<Socket>();
  answer: RawResponse;
  readonly #server: Server;
  #connections = 0;

  constructor(answer: RawResponse) {
    this.answer = answer;
    this.#server = createServer((socket) => this.serve(socket));
  }

  /** Its address, once it listens: `http://127.0.0.1:<port>`. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${String(this.port)}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Serves a connection accepted elsewhere, such as over TLS. */
  serve(socket: Socket): void {
    const connection = (this.#connections += 1);
    let [unread, nth] = ['', 0];
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    // Some tests are about clients that disconnect.
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      unread += chunk.toString('latin1');
      for (;;) {
        const end = unread.indexOf('\r\n\r\n');
        if (end === -1) return;
        const [line = '', ...lines] = unread.slice(0, end).split('\r\n');
        const headers = Object.fromEntries(lines.map(parted));
        const length = Number(headers['content-length'] ?? 0);
        if (unread.length < end + 4 + length) return;
        const body = Buffer.from(unread.slice(end + 4, end + 4 + length), 'latin1').toString();
        unread = unread.slice(end + 4 + length);
        nth += 1;
        const request = { connection, nth, line, headers, body };
        this.requests.push(request);
        this.answer(request, socket);
      }
    });
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function parted(header: string): [name: string, value: string] {
  const colon = header.indexOf(':');
  return [header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim()];
}
