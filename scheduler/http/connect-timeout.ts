import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { HttpRequestError } from './http-request-error.ts';

/** How long connecting may take, TLS included. Milliseconds. */
export const CONNECT_TIMEOUT = 10_000;

export function connectTimeoutError(host: string): HttpRequestError {
  const message = `no connection to ${host} within ${CONNECT_TIMEOUT / 1000} s`;
  return new HttpRequestError(message, { retryable: true, code: 'ETIMEDOUT' });
}

/** Destroys a new socket that is not connected in time. */
export function limitConnectTime(socket: Socket, host: string): void {
  const late = setTimeout(() => socket.destroy(connectTimeoutError(host)), CONNECT_TIMEOUT);
  const stop = (): void => clearTimeout(late);
  socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', stop);
  socket.once('close', stop);
}
