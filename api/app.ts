import { parse as parseQuery } from 'node:querystring';
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { newId } from '../domain/ids.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import { agentEndpoints } from './endpoints/agent-endpoints.ts';
import {
  beginHeaders,
  layOpen,
  layOpenWhenTouched,
  requestIdOf,
} from './serving/answer-headers.ts';
import { auditEndpoints } from './endpoints/history/audit-endpoints.ts';
import { authEndpoints } from './endpoints/auth-endpoints.ts';
import { serveAuthorizationServer } from './access/authorization-server.ts';
import { concurrencyEndpoints } from './endpoints/runs/concurrency-endpoints.ts';
import { addressByTrust } from './access/client-address.ts';
import { checkHost } from './serving/host-header.ts';
import { crossOrigin } from './serving/cross-origin.ts';
import { backfillEndpoints } from './endpoints/tasks/backfill-endpoints.ts';
import type { ApiDependencies, HealthReports } from './dependencies.ts';
import { dueEndpoints } from './endpoints/tasks/due-endpoints.ts';
import { exportEndpoints } from './endpoints/export-endpoints.ts';
import { serveDescription } from './openapi/docs-page.ts';
import type { Endpoint } from './endpoint.ts';
import { HttpError, errorHandler, sendError } from './errors.ts';
import { lend, type MountedExtensions } from './extension-lending.ts';
import { eventEndpoints } from './endpoints/events/event-endpoints.ts';
import { historyEndpoints } from './endpoints/history/history-endpoints.ts';
import { InnerRequests } from './inner-requests.ts';
import { KeyedCommands } from './keyed-commands.ts';
import { inOrder } from './serving/in-order.ts';
import { liveEndpoints } from './live/live-endpoints.ts';
import { MAX_HEADERS } from './serving/http-server.ts';
import { measure } from './serving/measuring.ts';
import { serveAll, share, unknownPath } from './serving/mount.ts';
import { oauthEndpoints } from './endpoints/oauth-endpoints.ts';
import { operationsEndpoints } from './endpoints/operations-endpoints.ts';
import { PageAccess } from './access/page-access.ts';
import { projectionEndpoints } from './endpoints/projection-endpoints.ts';
import { publishedEndpoints } from './endpoints/events/published-endpoints.ts';
import { guardProtectedResource, serveMetadata } from './access/protected-resource.ts';
import { rateLimiting } from './access/rate-limit.ts';
import { replayEndpoints } from './endpoints/history/replay-endpoints.ts';
import { runEndpoints } from './endpoints/runs/run-endpoints.ts';
import { runRetryEndpoints } from './endpoints/runs/run-retry-endpoints.ts';
import { scheduleEndpoints } from './endpoints/tasks/schedule-endpoints.ts';
import { servePlainly } from './serving/plain-paths.ts';
import { answerJson, sendJson } from './serving/sending.ts';
import { streamEndpoints } from './endpoints/history/stream-endpoints.ts';
import { taskControlEndpoints } from './endpoints/tasks/task-control-endpoints.ts';
import { taskEndpoints } from './endpoints/tasks/task-endpoints.ts';
import { taskExplainEndpoints } from './endpoints/tasks/task-explain-endpoint.ts';
import { traceRequests } from './serving/tracing.ts';
import { webhookEndpoints } from './endpoints/events/webhook-endpoints.ts';

/** Characters of a request's path and query. */
const LONGEST_URL = 8192;

/** Every endpoint that needs the read model and the log. */
export const endpoints: readonly Endpoint[] = [
  ...authEndpoints,
  ...oauthEndpoints,
  ...agentEndpoints,
  ...webhookEndpoints,
  // Before `/tasks/{id}`, which its path would fit as well.
  ...dueEndpoints,
  ...taskEndpoints,
  ...taskControlEndpoints,
  ...taskExplainEndpoints,
  ...scheduleEndpoints,
  ...backfillEndpoints,
  ...concurrencyEndpoints,
  ...liveEndpoints,
  // Before `/runs/{id}`, as the live runs.
  ...exportEndpoints,
  ...runEndpoints,
  ...runRetryEndpoints,
  ...eventEndpoints,
  ...publishedEndpoints,
  ...operationsEndpoints,
  ...projectionEndpoints,
  ...replayEndpoints,
  ...historyEndpoints,
  ...streamEndpoints,
  ...auditEndpoints,
];

/** What every process serves, whatever its roles. */
export interface Observing {
  readonly health: HealthReports;
  /** Prometheus text. */
  readonly metricsText: () => Promise<string>;
}

/** The HTTP interface of a process that has the role `api`. */
export function createApi(
  dependencies: ApiDependencies,
  observing: Observing,
  extensions: MountedExtensions | null = null,
): Express {
  const { settings, telemetry } = dependencies;
  const shared = share(dependencies);
  const inner = new InnerRequests();
  if (extensions !== null) {
    const pages = new PageAccess(dependencies, shared.authentication);
    const commands = new KeyedCommands(shared.keys, dependencies.clock);
    extensions.useHttp(lend(shared.authentication, settings, inner, pages, commands));
  }
  const app = bare(settings.trustProxy, telemetry, [
    inner.recognize,
    crossOrigin(settings.corsOrigins),
    rateLimiting(dependencies, shared.authentication, inner),
    bounded,
    extensions === null ? null : guardProtectedResource(settings),
    checkHost,
    extensions === null ? null : atExtensions(extensions),
    serveAll(endpoints, shared),
  ]);
  observe(app, observing);
  serveMetadata(app, settings);
  serveAuthorizationServer(app, settings);
  serveDescription(app, endpoints, {
    version: settings.version,
    log: telemetry.log,
    tools: dependencies.tools.builtIn,
    extensions,
  });
  if (extensions !== null) {
    app.use((request, response, next) => extensions.refuse(request, response, next));
  }
  end(app, telemetry, settings.production);
  return app;
}

/** The HTTP interface of a process without the role `api`: health and metrics. */
export function createObservingApp(
  observing: Observing,
  about: { readonly telemetry: Telemetry; readonly production: boolean },
): Express {
  const app = bare(0, about.telemetry, [bounded, checkHost]);
  observe(app, observing);
  end(app, about.telemetry, about.production);
  return app;
}

/** @param served goes before all that is added to it; see {@link inOrder} */
function bare(
  trustProxy: number | readonly string[],
  telemetry: Telemetry,
  served: readonly (RequestHandler | null)[],
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', trustProxy === 0 ? false : trustProxy);
  // All there are: how long a URL may be is bounded, and of a known parameter nothing may be left out without a word.
  app.set('query parser', (text: string) => parseQuery(text, '&', '=', { maxKeys: 0 }));
  app.enable('case sensitive routing');
  app.response.json = answerJson;
  layOpenWhenTouched(app);
  freshByValidator(app);
  addressByTrust(app);
  const traced = telemetry.traces === undefined ? null : traceRequests(telemetry.traces);
  app.use(inOrder([measure(telemetry), begin, traced, ...served, open]));
  return app;
}

const begin: RequestHandler = (request, response, next) => {
  beginHeaders(response, newRequestId(request));
  next();
};

const open: RequestHandler = (_request, response, next) => {
  layOpen(response);
  next();
};

/**
 * What has neither an ETag nor a time is never what a client knows: to Express `If-None-Match: *` means any answer, and it
 * would leave the body out.
 */
function freshByValidator(app: Express): void {
  const known = Object.getOwnPropertyDescriptor(express.request, 'fresh');
  Object.defineProperty(app.request, 'fresh', {
    configurable: true,
    get(this: Request) {
      const { res } = this;
      const hasValidator =
        res?.hasHeader('ETag') === true || res?.hasHeader('Last-Modified') === true;
      return hasValidator && known?.get?.call(this) === true;
    },
  });
}

/** What extensions serve. */
function atExtensions(extensions: MountedExtensions): RequestHandler {
  return (request, response, next) => {
    if (!request.path.startsWith('/ext/')) {
      next();
      return undefined;
    }
    return extensions.serve(request, response, next);
  };
}

function observe(app: Express, { health, metricsText }: Observing): void {
  servePlainly(app, '/health', async (response) => {
    const { status, body } = await health.report();
    sendJson(response, status, body);
  });
  servePlainly(app, '/health/ready', async (response) => {
    const { status, body } = await health.ready();
    sendJson(response, status, body);
  });
  servePlainly(app, '/health/live', (response) => {
    sendJson(response, 200, health.live());
  });
  servePlainly(app, '/ext/observability/metrics', async (response) => {
    response.set('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    response.send(await metricsText());
  });
}

/** What no client of this service comes near is refused before anything looks into it. */
function bounded(request: Request, _response: Response, next: NextFunction): void {
  const { url, rawHeaders } = request;
  if (url.length > LONGEST_URL) {
    next(new HttpError('uri_too_long', 'the URL is too long', { limit: LONGEST_URL }));
  } else if (rawHeaders.length > 2 * MAX_HEADERS) {
    next(new HttpError('headers_too_large', 'there are too many headers', { limit: MAX_HEADERS }));
  } else {
    next();
  }
}

function end(app: Express, telemetry: Telemetry, production: boolean): void {
  app.use((request: Request, response: Response) => {
    sendError(response, unknownPath(request), requestIdOf(response));
  });
  app.use(errorHandler(telemetry, production));
}

/** The client's own id of the request where it has one and it is harmless, else a new one. */
function newRequestId(request: Request): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^[A-Za-z0-9_.:-]{1,100}$/.test(given)
    ? given
    : newId(Date.now());
}
