import type { Server } from 'node:http';
import type { TlsFiles } from '../starting/tls-files.ts';
import { createServer, type Socket } from 'node:net';
import type { Express } from 'express';
import { createHttpServer } from '../../api/serving/http-server.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Log } from '../../observability/telemetry.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { ConfigurationError } from '../configuration/setting-readers.ts';
import { raising } from '../starting/open-files.ts';

/** How long requests under way may go on while stopping. Milliseconds. */
const LINGER = 2000;

/** All connections of each server: of those whose protocol was changed `node:http` knows nothing any more. */
const connections = new WeakMap<Server, Set<Socket>>();

/** That connections are refused is said again after so long. Milliseconds. */
const AGAIN = 60_000;

/**
 * Listens for HTTP. Connections beyond what there is room for are closed at once, and the log says so, once a minute.
 * @param room connections that clients may have at a time
 * @throws Error in one line when the address can't be had
 */
export function listen(
  app: Express,
  { host, port }: Pick<Configuration, 'host' | 'port'>,
  room: number,
  { clock, log, tls }: { readonly clock: Clock; readonly log: Log; readonly tls: TlsFiles | null },
): Promise<Server> {
  const server = createHttpServer(app, { tls });
  if (room < Infinity) server.maxConnections = room;
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  let said = Number.NEGATIVE_INFINITY;
  let refused = 0;
  server.on('drop', () => {
    refused += 1;
    const now = clock.steady();
    if (now - said < AGAIN) return;
    log.warn(`connections are refused, as clients have all that there is room for: ${raising}`, {
      connections: room,
      refused,
    });
    said = now;
    refused = 0;
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refusalOf(error, host, port)));
    server.listen(port, host, () => resolve(server));
  });
}

/**
 * Looks whether the address can be had, before anything else is begun: a service that can't be reached is to make no store,
 * lead nothing and register nobody.
 * @throws ConfigurationError for a host that is no address of this machine; Error in one line when the port can't be had
 */
export function requireAddress({
  host,
  port,
}: Pick<Configuration, 'host' | 'port'>): Promise<void> {
  const probe = createServer();
  return new Promise((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) => reject(refusalOf(error, host, port)));
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}

/** Codes of the system, and of the resolver, for what is no address of this machine. */
const NO_ADDRESS = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EINVAL'];

function refusalOf(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const { code = '', message } = error;
  if (NO_ADDRESS.includes(code)) {
    const fault = `is ${JSON.stringify(host)}; it must be an address of this machine`;
    return new ConfigurationError('SVC_HOST', fault);
  }
  const why =
    code === 'EADDRINUSE'
      ? `SVC_PORT: ${host}:${port} is in use by another process`
      : code === 'EACCES'
        ? `SVC_PORT: this process may not listen on ${host}:${port}`
        : `can't listen on ${host}:${port}: ${message}`;
  return new Error(why, { cause: error });
}

/** Where a server listens. @param secure whether it has a certificate */
export function boundAddress(
  server: Server,
  host: string,
  secure: boolean,
): { readonly port: number; readonly address: string } {
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
  const name = host.includes(':') ? `[${host}]` : host;
  return { port, address: `${secure ? 'https' : 'http'}://${name}:${port}` };
}

/** Takes no more connections, lets requests under way end, then closes. */
export function stopServing(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => {
      server.closeAllConnections();
      for (const socket of connections.get(server) ?? []) socket.destroy();
    }, LINGER);
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    server.closeIdleConnections();
  });
}
