import type { Server } from 'node:http';
import type { Express } from 'express';
import { createHttpServer } from '../../api/serving/http-server.ts';
import type { Configuration } from '../configuration/configuration.ts';

/** How long requests under way may go on while stopping. Milliseconds. */
const LINGER = 2000;

/**
 * Listens for HTTP.
 * @throws Error in one line when the address can't be had
 */
export function listen(
  app: Express,
  { host, port }: Pick<Configuration, 'host' | 'port'>,
): Promise<Server> {
  const server = createHttpServer(app);
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(refusalOf(error, host, port), { cause: error }));
    });
    server.listen(port, host, () => resolve(server));
  });
}

function refusalOf(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `SVC_PORT: ${host}:${port} is in use by another process`;
    case 'EACCES':
      return `SVC_PORT: this process may not listen on ${host}:${port}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `SVC_HOST: ${host} is no address of this machine`;
    default:
      return `can't listen on ${host}:${port}: ${error.message}`;
  }
}

/** Takes no more connections, lets requests under way end, then closes. */
export function stopServing(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => server.closeAllConnections(), LINGER);
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    server.closeIdleConnections();
  });
}
