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
import { replayWithoutUpgrade, isWebSocketHandshake } from './upgrade-requests.ts';
import { SocketConnection, type CallHandler } from './socket-connection.ts';

/** Per extension and process. */
const MAX_OPEN_SOCKETS = 1_000;
/** Limit of a message, and of the data that a client has not read. */
const MAX_PAYLOAD_BYTES = 1024 * 1024;
/** How often a client must respond, in milliseconds. */
const PING_INTERVAL_MS = 30_000;
/** How often tokens are checked, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;
/** Subprotocol with which a page, which cannot set headers, sends its token: `svc.token, <token>`. */
const TOKEN_PROTOCOL = 'svc.token';

/** An admitted request for a connection. */
interface Opening {
  readonly extension: Extension;
  readonly path: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: ExtensionCaller | null;
  /** Whether its token is still valid. */
  readonly isStillAllowed: () => Promise<boolean>;
}

interface Upgrade {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** The WebSockets of all extensions. */
export class Sockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_PAYLOAD_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: (offered) => (offered.has(TOKEN_PROTOCOL) ? TOKEN_PROTOCOL : false),
  });
  readonly #upgrades = new WeakMap<IncomingMessage, Upgrade>();
  readonly #open = new Map<Extension, Set<SocketConnection>>();
  /** Error of the last handshake; the host responds in place of `ws`. */
  #handshakeError: string | null = null;
  #isClosed = false;

  constructor() {
    this.#server.on('wsClientError', (error) => (this.#handshakeError = error.message));
  }

  /**
   * Serves an upgrade request like any other request, so it gets the same errors. For another protocol, the `Upgrade`
   * is ignored.
   * @param server that received it
   */
  receive(
    listener: RequestListener,
    server: Server,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): void {
    if (!isWebSocketHandshake(request)) {
      replayWithoutUpgrade(server, request, socket, head);
      return;
    }
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    // `end` alone would leave the connection open until the client closes its side.
    response.once('finish', () => (socket as Socket).destroySoon());
    socket.on('error', () => socket.destroy());
    this.#upgrades.set(request, { socket, head });
    useProtocolToken(request);
    listener(request, response);
  }

  isUpgrade(request: IncomingMessage): boolean {
    return this.#upgrades.has(request);
  }

  /**
   * Opens a connection.
   * @param callHandler calls a handler of the extension; if it throws, the connection is closed
   * @throws ExtensionError `not_found` without a handler for the path, `unavailable` over the limit or while
   *   stopping, `bad_request` for an invalid handshake
   */
  open(
    { extension, path, request, response, caller, isStillAllowed }: Opening,
    callHandler: CallHandler,
  ): void {
    const upgrade = this.#upgrades.get(request);
    const handler = extension.sockets.get(path);
    if (upgrade === undefined || handler === undefined) {
      const details = { resource: 'path', id: path, extension_id: extension.id };
      throw new ExtensionError('not_found', 'no such WebSocket', details);
    }
    if (this.#isClosed) throw new ExtensionError('unavailable', 'the service is stopping');
    const open = this.#open.get(extension) ?? new Set();
    this.#open.set(extension, open);
    if (open.size >= MAX_OPEN_SOCKETS) {
      const details = { extension_id: extension.id, limit: MAX_OPEN_SOCKETS };
      throw new ExtensionError('unavailable', 'too many WebSockets are open', details);
    }
    const { socket, head } = upgrade;
    response.detachSocket(socket as Socket);
    (socket as Socket).setTimeout(0);
    let isOpen = false;
    this.#handshakeError = null;
    this.#server.handleUpgrade(request, socket, head, (client) => {
      isOpen = true;
      const connection = new SocketConnection(client, callHandler);
      open.add(connection);
      client.once('close', () => {
        open.delete(connection);
        // Request metrics wait for this event.
        response.emit('close');
      });
      keepAlive(client);
      closeWhenTokenExpires(connection, isStillAllowed);
      const address = new URL(request.url ?? '/', 'http://localhost');
      const query = Object.fromEntries(address.searchParams);
      const socketView = socketOf(connection, { caller, query });
      void callHandler(`WebSocket ${path}`, () => handler(socketView)).then((succeeded) => {
        if (!succeeded) connection.close(1011);
      });
    });
    if (!isOpen) this.#refuse(response, socket as Socket);
  }

  /** @throws ExtensionError `bad_request`, unless the client has disconnected */
  #refuse(response: ServerResponse, socket: Socket): void {
    if (this.#handshakeError === null) {
      if (!response.closed) response.emit('close');
      return;
    }
    response.assignSocket(socket);
    response.setHeader('Sec-WebSocket-Version', '13, 8');
    throw badInput('handshake', this.#handshakeError);
  }

  /** Closes all connections with the code for a stopping service, and opens no more. */
  close(): void {
    this.#isClosed = true;
    for (const connections of this.#open.values()) {
      for (const connection of connections) {
        connection.close(1001, 'the service is stopping');
        connection.client.terminate();
      }
    }
  }

  /** Closes the connections of one extension. */
  closeAll(extension: Extension): void {
    for (const connection of this.#open.get(extension) ?? []) connection.close(1011);
  }
}

/** Copies a token from the subprotocol to the `Authorization` header. */
function useProtocolToken({ headers }: IncomingMessage): void {
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((each) => each.trim());
  const [protocol, token] = offered;
  if (protocol !== TOKEN_PROTOCOL || token === undefined) return;
  headers.authorization ??= `Bearer ${token}`;
  headers['sec-websocket-protocol'] = TOKEN_PROTOCOL;
}

function keepAlive(client: WebSocket): void {
  let isAlive = true;
  const timer = setInterval(() => {
    if (!isAlive && !client.isPaused) client.terminate();
    // Nothing can be heard from a paused client.
    isAlive = client.isPaused;
    client.ping();
  }, PING_INTERVAL_MS);
  timer.unref();
  client.on('pong', () => (isAlive = true));
  client.on('message', () => (isAlive = true));
  client.once('close', () => clearInterval(timer));
  // `ws` closes it after a connection or protocol error.
  client.on('error', () => client.terminate());
}

function closeWhenTokenExpires(
  connection: SocketConnection,
  isStillAllowed: () => Promise<boolean>,
): void {
  const timer = setInterval(() => {
    void isStillAllowed().then((isAllowed) => {
      if (!isAllowed) connection.close(1008, 'the token is no longer valid');
    });
  }, CHECK_INTERVAL_MS);
  timer.unref();
  connection.client.once('close', () => clearInterval(timer));
}

function socketOf(
  connection: SocketConnection,
  properties: Pick<ExtensionSocket, 'caller' | 'query'>,
): ExtensionSocket {
  const { client } = connection;
  const closed = new AbortController();
  client.once('close', () => closed.abort());
  return Object.freeze({
    ...properties,
    signal: closed.signal,
    send(message) {
      const hasRoom = client.bufferedAmount <= MAX_PAYLOAD_BYTES;
      if (client.readyState !== client.OPEN || !hasRoom) return false;
      const json = JSON.stringify(message) as string | undefined;
      if (json === undefined) throw new TypeError(`message must be JSON, got a ${typeof message}`);
      client.send(json);
      return true;
    },
    onMessage: (handler) => connection.onMessage(handler),
    close: (code = 1000, reason = '') => connection.close(code, reason),
  } satisfies ExtensionSocket);
}
