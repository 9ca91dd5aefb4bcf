import express, { type Express, type Request, type Response } from 'express';
import { newId } from '../domain/ids.ts';
import { agentEndpoints } from './agent-endpoints.ts';
import { authEndpoints } from './auth-endpoints.ts';
import type { ApiDependencies, HealthReports } from './dependencies.ts';
import type { Endpoint } from './endpoint.ts';
import { HttpError, errorHandler, sendError } from './errors.ts';
import { eventEndpoints } from './event-endpoints.ts';
import { mount, share } from './mount.ts';
import { runEndpoints } from './run-endpoints.ts';
import { taskEndpoints } from './task-endpoints.ts';

/** Every endpoint that needs the read model and the log. */
export const endpoints: readonly Endpoint[] = [
  ...authEndpoints,
  ...agentEndpoints,
  ...taskEndpoints,
  ...runEndpoints,
  ...eventEndpoints,
];

/** What every process serves, whatever its roles. */
export interface Observing {
  readonly health: HealthReports;
  /** Prometheus text. */
  readonly metricsText: () => Promise<string>;
}

/** The HTTP interface of a process that has the role `api`. */
export function createApi(dependencies: ApiDependencies, observing: Observing): Express {
  const { settings, telemetry } = dependencies;
  const app = bare(settings.trustProxy);
  observe(app, observing);
  const shared = share(dependencies);
  for (const endpoint of endpoints) mount(app, endpoint, shared);
  end(app, telemetry, settings.production);
  return app;
}

/** The HTTP interface of a process without the role `api`: health and metrics. */
export function createObservingApp(
  observing: Observing,
  about: Pick<ApiDependencies, 'telemetry'> & { readonly production: boolean },
): Express {
  const app = bare(0);
  observe(app, observing);
  end(app, about.telemetry, about.production);
  return app;
}

function bare(trustProxy: number | readonly string[]): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', trustProxy === 0 ? false : trustProxy);
  app.set('query parser', 'simple');
  app.use((request, response, next) => {
    response.set('X-Request-Id', requestIdOf(request));
    response.set('Cache-Control', 'no-store');
    response.set('X-Content-Type-Options', 'nosniff');
    next();
  });
  return app;
}

function observe(app: Express, { health, metricsText }: Observing): void {
  app.get('/health', async (_request: Request, response: Response) => {
    const { status, body } = await health.report();
    response.status(status).json(body);
  });
  app.get('/health/ready', async (_request: Request, response: Response) => {
    const { status, body } = await health.ready();
    response.status(status).json(body);
  });
  app.get('/health/live', (_request: Request, response: Response) => {
    response.json(health.live());
  });
  app.get('/ext/observability/metrics', async (_request: Request, response: Response) => {
    response.set('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    response.send(await metricsText());
  });
}

function end(app: Express, telemetry: ApiDependencies['telemetry'], production: boolean): void {
  app.use((request: Request, response: Response) => {
    const error = new HttpError('not_found', `there is no ${request.method} ${request.path}`, {
      resource: 'path',
      id: request.path,
    });
    sendError(response, error, String(response.getHeader('X-Request-Id')));
  });
  app.use(errorHandler(telemetry, production));
}

/** The client's own id of the request where it has one and it is harmless, else a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^[A-Za-z0-9_.:-]{1,100}$/.test(given)
    ? given
    : newId(Date.now());
}
