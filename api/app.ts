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
import { agentDisablingEndpoints } from './endpoints/agent-disabling.ts';
import { namespaceEndpoints } from './endpoints/namespace-endpoints.ts';
import { expiringKeyEndpoints } from './endpoints/expiring-key-endpoint.ts';
import { agentEndpoints } from './endpoints/agent-endpoints.ts';
import { namespaceUsageEndpoints } from './endpoints/namespace-usage-endpoint.ts';
import { apiKeyEndpoints } from './endpoints/api-key-endpoints.ts';
import {
  applyHeaders,
  applyHeadersOnAccess,
  deferHeaders,
  requestIdOf,
} from './serving/response-headers.ts';
import { compose } from './serving/compose.ts';
import { approvalEndpoints } from './endpoints/runs/approval-endpoints.ts';
import { auditEndpoints } from './endpoints/history/audit-endpoints.ts';
import { authEndpoints } from './endpoints/auth-endpoints.ts';
import { serveAuthorizationServer } from './access/authorization-server.ts';
import { callbackEndpoints } from './endpoints/runs/callback-endpoints.ts';
import { concurrencyEndpoints } from './endpoints/runs/concurrency-endpoints.ts';
import { addressByTrust } from './access/client-address.ts';
import { checkHost } from './serving/host-header.ts';
import { crossOrigin } from './serving/cross-origin.ts';
import { backfillEndpoints } from './endpoints/tasks/backfill-endpoints.ts';
import type { ApiDependencies, HealthReports } from './dependencies.ts';
import { calendarEndpoints } from './endpoints/tasks/calendar-endpoint.ts';
import { checkEndpoints } from './endpoints/tasks/check-endpoint.ts';
import { dueEndpoints } from './endpoints/tasks/due-endpoints.ts';
import { firesEndpoints } from './endpoints/tasks/fires-endpoint.ts';
import { toolsEndpoints } from './endpoints/tasks/tools-endpoint.ts';
import { outcomesEndpoints } from './endpoints/tasks/outcomes-endpoint.ts';
import { exportEndpoints } from './endpoints/export-endpoints.ts';
import { serveDescription } from './openapi/docs-page.ts';
import type { Endpoint } from './endpoint.ts';
import { HttpError, errorHandler, sendError } from './errors.ts';
import { extensionRules, type ExtensionRules, type MountedExtensions } from './extension-rules.ts';
import { eventEndpoints } from './endpoints/events/event-endpoints.ts';
import { eventListEndpoints } from './endpoints/events/event-list-endpoint.ts';
import { historyEndpoints } from './endpoints/history/history-endpoints.ts';
import { InnerRequests } from './inner-requests.ts';
import { KeyedCommands } from './keyed-commands.ts';
import { liveEndpoints } from './live/live-endpoints.ts';
import { MAX_HEADERS } from './serving/http-server.ts';
import { measure } from './serving/measuring.ts';
import { serveAll, share, unknownPath } from './serving/mount.ts';
import type { Shared } from './serving/request-steps.ts';
import { oauthEndpoints } from './endpoints/oauth-endpoints.ts';
import { operationsEndpoints } from './endpoints/operations-endpoints.ts';
import { PageAccess } from './access/page-access.ts';
import { peopleEndpoints } from './endpoints/people-endpoints.ts';
import { projectionEndpoints } from './endpoints/projection-endpoints.ts';
import { publishedEndpoints } from './endpoints/events/published-endpoints.ts';
import { acceptPageCookie } from './access/page-cookie.ts';
import { guardProtectedResource, serveMetadata } from './access/protected-resource.ts';
import { rateLimiting } from './access/rate-limit.ts';
import { replayEndpoints } from './endpoints/history/replay-endpoints.ts';
import { runEndpoints } from './endpoints/runs/run-endpoints.ts';
import { statisticsEndpoints } from './endpoints/runs/statistics-endpoints.ts';
import { artifactEndpoints } from './endpoints/runs/artifact-endpoints.ts';
import { runCancelEndpoints } from './endpoints/runs/run-cancel-endpoint.ts';
import { runExplainEndpoints } from './endpoints/runs/run-explain-endpoint.ts';
import { runRetryEndpoints } from './endpoints/runs/run-retry-endpoints.ts';
import { sessionEndpoints } from './endpoints/session-endpoints.ts';
import { scheduleEndpoints } from './endpoints/tasks/schedule-endpoints.ts';
import { servePlainly } from './serving/plain-paths.ts';
import { respondWithJson, sendJson } from './serving/sending.ts';
import { secretEndpoints } from './endpoints/secrets/secret-endpoints.ts';
import { secretKeyEndpoints } from './endpoints/secrets/secret-key-endpoint.ts';
import { streamEndpoints } from './endpoints/history/stream-endpoints.ts';
import { taskControlEndpoints } from './endpoints/tasks/task-control-endpoints.ts';
import { taskEndpoints } from './endpoints/tasks/task-endpoints.ts';
import { taskExplainEndpoints } from './endpoints/tasks/task-explain-endpoint.ts';
import { traceRequests } from './serving/tracing.ts';
import { webhookEndpoints } from './endpoints/events/webhook-endpoints.ts';
import { jobEndpoints } from './endpoints/workers/job-endpoints.ts';
import { workerEndpoints } from './endpoints/workers/worker-endpoints.ts';

/** Characters of a request's path and query. */
const MAX_URL_LENGTH = 8192;

/** All endpoints that need the read model and the log. */
export const endpoints: readonly Endpoint[] = [
  ...authEndpoints,
  ...oauthEndpoints,
  ...namespaceEndpoints,
  ...sessionEndpoints,
  ...peopleEndpoints,
  // Must precede `/agents/{agent_id}`, which would match its path.
  ...expiringKeyEndpoints,
  ...agentEndpoints,
  ...namespaceUsageEndpoints,
  ...agentDisablingEndpoints,
  ...apiKeyEndpoints,
  ...webhookEndpoints,
  // Must precede `/secrets/{name}`, which would match its path.
  ...secretKeyEndpoints,
  ...secretEndpoints,
  // Must precede `/tasks/{id}`, which would match its path.
  ...dueEndpoints,
  ...outcomesEndpoints,
  ...checkEndpoints,
  ...taskEndpoints,
  ...taskControlEndpoints,
  ...taskExplainEndpoints,
  ...firesEndpoints,
  ...calendarEndpoints,
  ...toolsEndpoints,
  ...scheduleEndpoints,
  ...backfillEndpoints,
  ...concurrencyEndpoints,
  // The live runs and the exports come before `/runs/{id}`.
  ...liveEndpoints,
  ...exportEndpoints,
  ...statisticsEndpoints,
  ...runEndpoints,
  ...runCancelEndpoints,
  ...runExplainEndpoints,
  ...runRetryEndpoints,
  ...artifactEndpoints,
  ...workerEndpoints,
  ...jobEndpoints,
  ...approvalEndpoints,
  ...callbackEndpoints,
  ...eventEndpoints,
  ...eventListEndpoints,
  ...publishedEndpoints,
  ...operationsEndpoints,
  ...projectionEndpoints,
  ...replayEndpoints,
  ...historyEndpoints,
  ...streamEndpoints,
  ...auditEndpoints,
];

/** The endpoints that every process serves, regardless of its roles. */
export interface Observing {
  readonly health: HealthReports;
  /** In the text format of Prometheus. */
  readonly metricsText: () => Promise<string>;
}

/** The middleware that all requests share, both those to the interface itself and those to extensions. */
export interface PreparedApi {
  readonly shared: Shared;
  readonly inner: InnerRequests;
  /** Rules for the extension host, which {@link createApi} then mounts. */
  readonly rules: ExtensionRules;
}

export function prepareApi(dependencies: ApiDependencies): PreparedApi {
  const { settings, clock } = dependencies;
  const shared = share(dependencies);
  const { authentication, keys } = shared;
  const inner = new InnerRequests();
  const pages = new PageAccess(dependencies, authentication);
  const commands = new KeyedCommands(keys, clock);
  const rules = extensionRules(authentication, settings, inner, pages, commands);
  return { shared, inner, rules };
}

/** The HTTP interface of a process that has the role `api`. */
export function createApi(
  { shared, inner }: PreparedApi,
  observing: Observing,
  extensions: MountedExtensions | null = null,
): Express {
  const { dependencies } = shared;
  const { settings, telemetry } = dependencies;
  const app = createApp(settings.trustProxy, telemetry, [
    inner.recognize,
    acceptPageCookie(settings),
    crossOrigin(settings.corsOrigins),
    rateLimiting(dependencies, shared.authentication, inner),
    checkSize,
    extensions === null ? null : guardProtectedResource(settings),
    checkHost,
    extensions === null ? null : serveExtensions(extensions),
    serveAll(endpoints, shared),
  ]);
  serveObserving(app, observing);
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
  serveRest(app, telemetry, settings.production);
  return app;
}

/** The HTTP interface of a process without the role `api`: health and metrics. */
export function createObservingApp(
  observing: Observing,
  about: { readonly telemetry: Telemetry; readonly production: boolean },
): Express {
  const app = createApp(0, about.telemetry, [checkSize, checkHost]);
  serveObserving(app, observing);
  serveRest(app, about.telemetry, about.production);
  return app;
}

function createApp(
  trustProxy: number | readonly string[],
  telemetry: Telemetry,
  handlers: readonly (RequestHandler | null)[],
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', trustProxy === 0 ? false : trustProxy);
  // Without a limit, because a URL's length is bounded, and no parameter may be silently dropped.
  app.set('query parser', (query: string) => parseQuery(query, '&', '=', { maxKeys: 0 }));
  app.enable('case sensitive routing');
  app.response.json = respondWithJson;
  applyHeadersOnAccess(app);
  freshByValidator(app);
  addressByTrust(app);
  const traced = telemetry.traces === undefined ? null : traceRequests(telemetry.traces);
  app.use(compose([measure(telemetry), beginHeaders, traced, ...handlers, endDeferral]));
  return app;
}

const beginHeaders: RequestHandler = (request, response, next) => {
  deferHeaders(response, newRequestId(request));
  next();
};

const endDeferral: RequestHandler = (_request, response, next) => {
  applyHeaders(response);
  next();
};

/**
 * A response is fresh only if it has a validator. Express takes `If-None-Match: *` for any response, and would leave the
 * body out.
 */
function freshByValidator(app: Express): void {
  const original = Object.getOwnPropertyDescriptor(express.request, 'fresh');
  Object.defineProperty(app.request, 'fresh', {
    configurable: true,
    get(this: Request) {
      const { res } = this;
      const hasValidator =
        res?.hasHeader('ETag') === true || res?.hasHeader('Last-Modified') === true;
      return hasValidator && original?.get?.call(this) === true;
    },
  });
}

function serveExtensions(extensions: MountedExtensions): RequestHandler {
  return (request, response, next) => {
    if (request.path.startsWith('/ext/')) return extensions.serve(request, response, next);
    next();
    return undefined;
  };
}

function serveObserving(app: Express, { health, metricsText }: Observing): void {
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

/** Rejects oversized requests before anything parses them. */
function checkSize({ url, rawHeaders }: Request, _response: Response, next: NextFunction): void {
  if (url.length > MAX_URL_LENGTH) {
    const details = { limit: MAX_URL_LENGTH };
    next(new HttpError('uri_too_long', 'the URL is too long', details));
  } else if (rawHeaders.length > 2 * MAX_HEADERS) {
    next(new HttpError('headers_too_large', 'there are too many headers', { limit: MAX_HEADERS }));
  } else {
    next();
  }
}

function serveRest(app: Express, telemetry: Telemetry, production: boolean): void {
  app.use((request: Request, response: Response) => {
    sendError(response, unknownPath(request), requestIdOf(response));
  });
  app.use(errorHandler(telemetry, production));
}

/** The client's own id of the request if it is harmless, otherwise a new id. */
function newRequestId(request: Request): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^[A-Za-z0-9_.:-]{1,100}$/.test(given)
    ? given
    : newId(Date.now());
}
