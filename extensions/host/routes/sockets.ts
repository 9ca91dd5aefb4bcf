import { ServerResponse, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import {
  ExtensionError,
  badInput,
  type ExtensionCaller,
  type ExtensionSocket,
} from '../../contract.ts';
import type { Extension } from '../extension.ts';
import { asIfNotAsked, asksForWebSocket } from './another-protocol.ts';
import { SocketConnection, type Enter } from './socket-connection.ts';

/** WebSockets that one extension may have open in a process. */
const MOST_OPEN = 1_000;
/** Of one message, and of what a client has left unread. Bytes. */
const MOST_PAYLOAD = 1024 * 1024;
/** How often a client must show that it is there. Milliseconds. */
const BEAT = 30_000;
/** How often it is looked whether a client's token still counts. Milliseconds. */
const LOOK = 1_000;
/** The subprotocol under which a page, which can set no header, sends its token: `svc.token, <token>`. */
const TOKEN_PROTOCOL = 'svc.token';

/** A connection that has been admitted. */
interface Opening {
  readonly extension: Extension;
  readonly path: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: ExtensionCaller | null;
  /** Whether the token that admitted it still does. */
  readonly counts: () => Promise<boolean>;
}

interface Upgrade {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** The WebSockets of all extensions. */
export class Sockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MOST_PAYLOAD,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: (offered) => (offered.has(TOKEN_PROTOCOL) ? TOKEN_PROTOCOL : false),
  });
  readonly #upgrades = new WeakMap<IncomingMessage, Upgrade>();
  readonly #open = new Map<Extension, Set<SocketConnection>>();
  /** What was wrong with a handshake, in place of the answer that `ws` would give. */
  #fault: string | null = null;
  #isClosed = false;

  constructor() {
    this.#server.on('wsClientError', (error) => (this.#fault = error.message));
  }

  /**
   * Takes a request with an `Upgrade` header, and leads it the way of all requests: what refuses them refuses it too,
   * with the same answers. One for another protocol is answered as if it had not asked.
   * @param server at which it came
   */
  receive(
    listener: RequestListener,
    server: Server,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): void {
    if (!asksForWebSocket(request)) {
      asIfNotAsked(server, request, socket, head);
      return;
    }
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    // Not merely ended: a client that never ends its side would keep the connection for ever.
    response.once('finish', () => (socket as Socket).destroySoon());
    socket.on('error', () => socket.destroy());
    this.#upgrades.set(request, { socket, head });
    takeToken(request);
    listener(request, response);
  }

  isUpgrade(request: IncomingMessage): boolean {
    return this.#upgrades.has(request);
  }

  /**
   * Opens a connection that has been admitted.
   * @param enter calls a handler of the extension; one that throws ends the connection
   * @throws ExtensionError `not_found` where the extension has no handler at the path, `unavailable` over the limit and
   *   once all were ended, `bad_request` for what opens no WebSocket
   */
  open({ extension, path, request, response, caller, counts }: Opening, enter: Enter): void {
    const upgrade = this.#upgrades.get(request);
    const handler = extension.sockets.get(path);
    if (upgrade === undefined || handler === undefined) {
      const details = { resource: 'path', id: path, extension_id: extension.id };
      throw new ExtensionError('not_found', 'there is no such WebSocket', details);
    }
    if (this.#isClosed) throw new ExtensionError('unavailable', 'the service is stopping');
    const open = this.#open.get(extension) ?? new Set();
    this.#open.set(extension, open);
    if (open.size >= MOST_OPEN) {
      const details = { extension_id: extension.id, limit: MOST_OPEN };
      throw new ExtensionError('unavailable', 'too many WebSockets are open', details);
    }
    const { socket, head } = upgrade;
    response.detachSocket(socket as Socket);
    (socket as Socket).setTimeout(0);
    let isOpen = false;
    this.#fault = null;
    this.#server.handleUpgrade(request, socket, head, (client) => {
      isOpen = true;
      const connection = new SocketConnection(client, enter);
      open.add(connection);
      client.once('close', () => {
        open.delete(connection);
        // What measures requests waits for it.
        response.emit('close');
      });
      keepAlive(client);
      endWithToken(connection, counts);
      const address = new URL(request.url ?? '/', 'http://localhost');
      const query = Object.fromEntries(address.searchParams);
      const shown = socketOf(connection, { caller, query });
      void enter(`WebSocket ${path}`, () => handler(shown)).then((fine) => {
        if (!fine) connection.close(1011);
      });
    });
    if (!isOpen) this.#refuse(response, socket as Socket);
  }

  /** @throws ExtensionError `bad_request`, unless the client has left: then the request is over */
  #refuse(response: ServerResponse, socket: Socket): void {
    if (this.#fault === null) {
      if (!response.closed) response.emit('close');
      return;
    }
    response.assignSocket(socket);
    response.setHeader('Sec-WebSocket-Version', '13, 8');
    throw badInput('handshake', this.#fault);
  }

  /** How many an extension has open. */
  openOf(extension: Extension): number {
    return this.#open.get(extension)?.size ?? 0;
  }

  /** Ends all: each client is told that the service goes away. None is opened any more. */
  close(): void {
    this.#isClosed = true;
    for (const connections of this.#open.values()) {
      for (const connection of connections) {
        connection.close(1001, 'the service is stopping');
        connection.client.terminate();
      }
    }
  }

  /** Ends those of one extension. */
  closeOf(extension: Extension): void {
    for (const connection of this.#open.get(extension) ?? []) connection.close(1011);
  }
}

/** Makes a token that came as a subprotocol look as one that came as a header. */
function takeToken({ headers }: IncomingMessage): void {
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((each) => each.trim());
  const [protocol, token] = offered;
  if (protocol !== TOKEN_PROTOCOL || token === undefined) return;
  headers.authorization ??= `Bearer ${token}`;
  headers['sec-websocket-protocol'] = TOKEN_PROTOCOL;
}

function keepAlive(client: WebSocket): void {
  let heard = true;
  const beat = setInterval(() => {
    if (!heard && !client.isPaused) client.terminate();
    // Of one that is not read from just now nothing can be heard.
    heard = client.isPaused;
    client.ping();
  }, BEAT);
  beat.unref();
  client.on('pong', () => (heard = true));
  client.on('message', () => (heard = true));
  client.once('close', () => clearInterval(beat));
  // A fault of the connection or of the protocol: `ws` closes it by itself.
  client.on('error', () => client.terminate());
}

/** One who was removed, or whose session has ended, hears no more. */
function endWithToken(connection: SocketConnection, counts: () => Promise<boolean>): void {
  const look = setInterval(() => {
    void counts().then((fine) => {
      if (!fine) connection.close(1008, 'the token does not count any more');
    });
  }, LOOK);
  look.unref();
  connection.client.once('close', () => clearInterval(look));
}

function socketOf(
  connection: SocketConnection,
  about: Pick<ExtensionSocket, 'caller' | 'query'>,
): ExtensionSocket {
  const { client } = connection;
  const gone = new AbortController();
  client.once('close', () => gone.abort());
  return Object.freeze({
    ...about,
    signal: gone.signal,
    send(message) {
      if (client.readyState !== client.OPEN || client.bufferedAmount > MOST_PAYLOAD) return false;
      const text = JSON.stringify(message) as string | undefined;
      if (text === undefined)
        throw new TypeError(`messages are JSON, and a ${typeof message} is none`);
      client.send(text);
      return true;
    },
    onMessage: (handler) => connection.onMessage(handler),
    close: (code = 1000, reason = '') => connection.close(code, reason),
  } satisfies ExtensionSocket);
}
