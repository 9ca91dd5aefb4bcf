import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { SharedLimit } from '../../domain/vocabulary.ts';
import { HttpError } from '../errors.ts';
import { addressOf, networkOf } from '../access/client-address.ts';
import { rawResponse } from './raw-response.ts';

/** The seconds after which a rejected client may try again. */
const RETRY_AFTER = '5';

/** Why a connection is refused. */
export type ConnectionLimit = Extract<SharedLimit, 'address' | 'unauthenticated'>;

export interface ConnectionLimits {
  /** The most connections of an address, or IPv6 network; 0: no limit. */
  readonly perAddress: number;
  /** The most connections, over all addresses, without a valid token so far; 0: no limit. */
  readonly unauthenticated: number;
  /** Whether the machine at an address is a trusted proxy, which connects on behalf of many clients. */
  readonly isProxy: (address: string) => boolean;
  readonly onRefused: (limit: ConnectionLimit) => void;
}

interface Connection {
  readonly network: string;
  isAuthenticated: boolean;
  authenticated: () => void;
}

/** Connections by socket, including the one inside TLS. */
const connections = new WeakMap<object, Connection>();

/** Notes that a request on this connection has shown a valid token. */
export function noteAuthenticated(socket: object | undefined): void {
  if (socket !== undefined) connections.get(socket)?.authenticated();
}

/**
 * Limits the connections of a server. A connection over a limit gets a 429 or 503 and is closed; over TLS, it is only
 * closed.
 */
export function limitConnections(server: Server, limits: ConnectionLimits, secure: boolean): void {
  const byNetwork = new Map<string, number>();
  /** TLS connections whose handshake has not ended. */
  const shaking = new Map<string, Connection>();
  let unauthenticated = 0;
  const admit = (socket: Socket): void => {
    const address = addressOf(socket.remoteAddress ?? '') ?? '';
    const isProxy = limits.isProxy(address);
    const network = networkOf(address);
    const open = byNetwork.get(network) ?? 0;
    const isFull = (limit: number, count: number): boolean => limit > 0 && count >= limit;
    const over = isFull(limits.unauthenticated, unauthenticated)
      ? 'unauthenticated'
      : !isProxy && isFull(limits.perAddress, open)
        ? 'address'
        : null;
    if (over !== null) {
      limits.onRefused(over);
      refuse(socket, over === 'address' ? limits.perAddress : limits.unauthenticated, over, secure);
      return;
    }
    const connection: Connection = { network, isAuthenticated: false, authenticated: () => {} };
    const authenticated = (): void => {
      if (!connection.isAuthenticated) unauthenticated -= 1;
      connection.isAuthenticated = true;
    };
    connection.authenticated = authenticated;
    byNetwork.set(network, open + 1);
    unauthenticated += 1;
    connections.set(socket, connection);
    const name = nameOf(socket);
    if (secure) shaking.set(name, connection);
    socket.once('close', () => {
      authenticated();
      if (shaking.get(name) === connection) shaking.delete(name);
      const left = (byNetwork.get(network) ?? 1) - 1;
      if (left > 0) byNetwork.set(network, left);
      else byNetwork.delete(network);
    });
  };
  // Called before the server's own listener, which then finds a refused connection closed.
  server.prependListener('connection', admit);
  server.prependListener('secureConnection', (socket: Socket) => {
    const connection = shaking.get(nameOf(socket));
    if (connection === undefined) return;
    shaking.delete(nameOf(socket));
    connections.set(socket, connection);
  });
}

/** The client's address and port of a connection. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

function refuse(socket: Socket, limit: number, over: ConnectionLimit, secure: boolean): void {
  // The client may close it first.
  socket.on('error', () => socket.destroy());
  if (secure) {
    socket.destroy();
    return;
  }
  const headers = { 'Retry-After': RETRY_AFTER };
  const error =
    over === 'address'
      ? new HttpError(
          'rate_limit_exceeded',
          `${limit} connections of this address are open; close some, or use them again`,
          { limit, setting: 'SVC_CONNECTIONS_PER_ADDRESS' },
          headers,
        )
      : new HttpError(
          'unavailable',
          `${limit} connections without a valid token are open; try again later`,
          { limit, setting: 'SVC_UNAUTHENTICATED_CONNECTIONS' },
          headers,
        );
  socket.write(rawResponse(error));
  socket.destroySoon();
}
