import type { Request, RequestHandler, Response } from 'express';
import { BEGINNING } from '../../domain/event-store.ts';
import { EVERY_NAMESPACE } from '../../projections/reach.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { Authentication } from '../access/authentication.ts';
import { RefusedRequests } from '../access/refused-requests.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Endpoint } from '../endpoint.ts';
import { HttpError, OAuthError, showErrorsAsPages } from '../errors.ts';
import { ForeignTokens } from '../people/foreign-tokens.ts';
import { ResponseCache } from './response-cache.ts';
import { applyHeaders, requestIdOf } from './response-headers.ts';
import { LargeResponses } from './large-responses.ts';
import { IdempotencyKeys } from './idempotency.ts';
import { describedPath, setRoute } from './measuring.ts';
import { OwnWrites } from './own-writes.ts';
import { viewsUnavailable } from './projection-state.ts';
import {
  respondFromCache,
  authenticate,
  checkInput,
  handle,
  readBody,
  readCommandHeaders,
  readsOf,
  sendBody,
  sendStream,
  takeTurn,
  waitForViews,
  type Exchange,
  type ServedEndpoint,
  type Shared,
} from './request-steps.ts';
import { Routes } from './routes.ts';
import { shownPath } from './shown-path.ts';
import { bodyCheck, checkEmpty, queryCheck } from './validation.ts';

/** The steps of a request. Their order is the order in which faults are reported. */
const steps = [
  authenticate,
  readBody,
  checkInput,
  readCommandHeaders,
  waitForViews,
  respondFromCache,
  takeTurn,
  handle,
  sendStream,
  sendBody,
] as const;

/** Takes a request through the steps, until one has answered it. */
async function serve(exchange: Exchange): Promise<void> {
  try {
    for (const step of steps) {
      const pending = step(exchange);
      if (pending !== undefined) await pending;
      if (exchange.hasResponded) break;
    }
  } catch (error) {
    throw await failureOf(exchange, error);
  } finally {
    exchange.endTurn();
  }
  // A repeated command may be answered with the refusal of the first one.
  const { result } = exchange;
  if ((result?.status ?? 200) >= 400) exchange.shared.refused.replayed(result?.body, exchange);
}

export function share(dependencies: ApiDependencies): Shared {
  const { store, clock, telemetry } = dependencies;
  const { people } = dependencies.settings;
  const { identityProvider: provider } = dependencies;
  const foreign =
    people === null || provider === null ? null : new ForeignTokens(dependencies, people, provider);
  const authentication = new Authentication(dependencies, foreign);
  return {
    dependencies,
    authentication,
    ownWrites: new OwnWrites(dependencies),
    keys: new IdempotencyKeys(store, clock, telemetry.failures),
    largeResponses: new LargeResponses(),
    refused: new RefusedRequests(dependencies, authentication),
  };
}

/**
 * Serves endpoints. A request with another method on one of their paths gets a 404 that names the methods that exist.
 */
export function serveAll(endpoints: readonly Endpoint[], shared: Shared): RequestHandler {
  const routes = new Routes<{ readonly path: string; readonly served: ServedEndpoint }>();
  for (const endpoint of endpoints) {
    const served = compile(endpoint, shared);
    for (const path of endpoint.paths) {
      routes.add(endpoint.method.toUpperCase(), path, { path: describedPath(path), served });
    }
  }
  return (request, response, next) => {
    const found = routes.find(request.method, request.path);
    if (found === null) {
      next();
      return undefined;
    }
    if (found.target === null) {
      setRoute(response, describedPath(found.path));
      applyHeaders(response);
      respondToOtherMethod(request, response, found.methods);
      return undefined;
    }
    const { path, served } = found.target;
    setRoute(response, path);
    if (served.endpoint.page === true) showErrorsAsPages(response);
    return serve(begin(served, request, response, found.parameters));
  };
}

function compile(endpoint: Endpoint, shared: Shared): ServedEndpoint {
  return {
    endpoint,
    shared,
    action: `${endpoint.method.toUpperCase()} ${describedPath(endpoint.paths[0])}`,
    checkBody: endpoint.body === undefined ? checkEmpty : bodyCheck(endpoint.body),
    checkQuery: queryCheck(endpoint.query),
    cache: new ResponseCache(),
  };
}

function begin(
  served: ServedEndpoint,
  request: Request,
  response: Response,
  pathParameters: Readonly<Record<string, string>>,
): Exchange {
  const { endpoint, shared, action, checkBody, checkQuery, cache } = served;
  return {
    endpoint,
    shared,
    action,
    checkBody,
    checkQuery,
    cache,
    request,
    response,
    pathParameters,
    id: requestIdOf(response),
    caller: null,
    // Endpoints without authentication check their own credential, such as a callback's token.
    reach: EVERY_NAMESPACE,
    own: null,
    parameters: {},
    query: {},
    body: undefined,
    key: undefined,
    reason: undefined,
    ifMatch: undefined,
    ownPosition: BEGINNING,
    passed: null,
    cacheEntry: null,
    result: undefined,
    hasResponded: false,
    endTurn: () => {},
  };
}

/** Records a refusal. @returns the error that its caller receives */
async function failureOf(exchange: Exchange, thrown: unknown): Promise<unknown> {
  const { endpoint, shared } = exchange;
  const error = endpoint.oauth === true ? asOAuthError(thrown) : thrown;
  shared.refused.thrown(error, exchange);
  if (!(error instanceof ReadModelError) || error.code !== 'NO_VIEW') return error;
  const { dependencies } = shared;
  return viewsUnavailable(dependencies, readsOf(exchange) ?? dependencies.projections);
}

/** OAuth has its own code for bad input. */
const asOAuthError = (error: unknown): unknown =>
  error instanceof HttpError && error.code === 'bad_request' && !(error instanceof OAuthError)
    ? new OAuthError('invalid_request', error.message)
    : error;

/**
 * Answers a request whose path does not have its method. `OPTIONS` gets the methods that exist, others get a 404.
 * @throws HttpError 404, with the header `Allow` set
 */
export function respondToOtherMethod(
  request: Request,
  response: Response,
  methods: readonly string[],
): void {
  const more = methods.includes('GET') ? ['HEAD', 'OPTIONS'] : ['OPTIONS'];
  response.set('Allow', [...methods, ...more].join(', '));
  if (request.method !== 'OPTIONS') throw unknownPath(request);
  response.status(204).end();
}

export function unknownPath(request: Request): HttpError {
  const { method } = request;
  const path = shownPath(request);
  const details = { resource: 'path', id: path };
  return new HttpError('not_found', `there is no ${method} ${path}`, details);
}
