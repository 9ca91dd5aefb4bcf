import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { createServer, type Socket } from 'node:net';
import type { Express } from 'express';
import { limitConnections, type ConnectionLimit } from '../../api/serving/client-connections.ts';
import { createHttpServer, secureContext } from '../../api/serving/http-server.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { ConfigurationError } from '../configuration/setting-readers.ts';
import { raiseLimitAdvice } from '../starting/open-files.ts';
import type { TlsFiles } from '../starting/tls-files.ts';

/** How long running requests may continue while the server stops. Milliseconds. */
const STOP_TIMEOUT = 2000;

/** The connections of each server. `node:http` loses sight of upgraded ones. */
const connections = new WeakMap<Server, Set<Socket>>();

/** Refused connections are logged at most this often. Milliseconds. */
const LOG_INTERVAL = 60_000;

/** The parts that a server needs besides its settings. */
interface ListenParts {
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'log' | 'count'>;
  readonly tls: TlsFiles | null;
}

/**
 * Listens for HTTP. Connections beyond a limit are refused, which is logged once a minute.
 * @param settings `sharing` limits the connections of an address, and those without a token; without it, neither is
 *   limited
 * @param room maximum number of client connections
 * @throws Error of one line when the address is not available
 */
export function listen(
  app: Express,
  settings: Pick<Configuration, 'host' | 'port'> & Partial<Pick<Configuration, 'sharing'>>,
  room: number,
  { clock, telemetry, tls }: ListenParts,
): Promise<Server> {
  const { host, port, sharing } = settings;
  const { log } = telemetry;
  const server = createHttpServer(app, { tls });
  if (room < Infinity) server.maxConnections = room;
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  const warnOfRoom = rarely(clock, (refused) => {
    const fields = { connections: room, refused };
    log.warn(`connections refused, the limit is reached: ${raiseLimitAdvice}`, fields);
  });
  server.on('drop', warnOfRoom);
  if (sharing !== undefined) {
    const warnOfLimit = rarely(clock, (refused) => {
      const settings = 'SVC_CONNECTIONS_PER_ADDRESS or SVC_UNAUTHENTICATED_CONNECTIONS';
      log.warn(`connections refused, the limit of ${settings} is reached`, { refused });
    });
    const limits = {
      perAddress: sharing.connectionsPerAddress,
      unauthenticated: sharing.unauthenticatedConnections,
      isProxy: (address: string) => (app.get('trust proxy fn') as ProxyTrust)(address, 0),
      onRefused: (limit: ConnectionLimit) => {
        telemetry.count('limit_refusals_total', { limit });
        warnOfLimit();
      },
    };
    limitConnections(server, limits, tls !== null);
  }
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refusalOf(error, host, port)));
    server.listen(port, host, () => resolve(server));
  });
}

/** Express's answer to whether the machine at an address is a trusted proxy; hop 0 is the connected one. */
type ProxyTrust = (address: string, hop: number) => boolean;

/** Counts refused connections and logs them once a minute. */
function rarely(clock: Clock, warn: (count: number) => void): () => void {
  let lastLogged = Number.NEGATIVE_INFINITY;
  let count = 0;
  return () => {
    count += 1;
    const now = clock.steady();
    if (now - lastLogged < LOG_INTERVAL) return;
    warn(count);
    lastLogged = now;
    count = 0;
  };
}

/**
 * Checks that the address is available before anything else starts, so that a failed start creates no files.
 * @throws ConfigurationError for a host that is not an address of this machine; Error of one line for the port
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

/** Error codes for a host that is not an address of this machine. */
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

/** The address of a server. @param secure whether it has a certificate */
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

/** Presents another certificate to new connections. Has no effect on a server of plain HTTP. */
export function replaceCertificate(server: Server | null, tls: TlsFiles): void {
  if (server instanceof TlsServer) server.setSecureContext(secureContext(tls));
}

/** Takes no more connections, lets running requests finish, then closes. */
export function stopServing(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => {
      server.closeAllConnections();
      for (const socket of connections.get(server) ?? []) socket.destroy();
    }, STOP_TIMEOUT);
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    server.closeIdleConnections();
  });
}
