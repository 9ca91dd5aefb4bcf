import type { Request, Response } from 'express';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { isUuid, newId } from '../../domain/ids.ts';
import type { Authentication } from '../access/authentication.ts';
import { baseOf } from '../access/public-address.ts';
import type { RefusedRequests } from '../access/refused-requests.ts';
import type { ApiDependencies } from '../dependencies.ts';
import {
  ANONYMOUS,
  type Call,
  type Caller,
  type Endpoint,
  type EndpointResponse,
} from '../endpoint.ts';
import { EVERY_NAMESPACE, reaches, type Reach } from '../../projections/reach.ts';
import type { Projection } from '../../projections/read-model.ts';
import { badRequest, notFound } from '../errors.ts';
import { CAUSE_HEADER } from '../inner-requests.ts';
import type { ResponseCache, CacheEntry, CachedResponse } from './response-cache.ts';
import { applyHeaders, endWithHtml, endWithJson, setHeader } from './response-headers.ts';
import { readJson } from './body.ts';
import type { LargeResponses } from './large-responses.ts';
import { readForm } from './form.ts';
import { reasonOf, reasonOfCommand, traceparentOf } from './headers.ts';
import { checkKey, type IdempotencyKeys } from './idempotency.ts';
import { ifMatchOf, withIfMatch, type IfMatch } from './if-match.ts';
import { notMeasured } from './measuring.ts';
import type { OwnWrites } from './own-writes.ts';
import { sendJson } from './sending.ts';
import { spanOf, traceCommand } from './tracing.ts';

/** The parts that all endpoints of one process share. */
export interface Shared {
  readonly dependencies: ApiDependencies;
  readonly authentication: Authentication;
  readonly ownWrites: OwnWrites;
  readonly keys: IdempotencyKeys;
  readonly largeResponses: LargeResponses;
  readonly refused: RefusedRequests;
}

/** An endpoint with its checks. */
export interface ServedEndpoint {
  readonly endpoint: Endpoint;
  readonly shared: Shared;
  /** Method and path as the interface's description writes them. */
  readonly action: string;
  /** @throws HttpError 400 */
  readonly checkBody: (body: unknown) => void;
  readonly checkQuery: (query: Readonly<Record<string, unknown>>) => object;
  readonly cache: ResponseCache;
}

/** A request on its way through the steps. Each step fills in its results. */
export interface Exchange extends ServedEndpoint {
  readonly request: Request;
  readonly response: Response;
  /** The parameters as sent. */
  readonly pathParameters: Readonly<Record<string, string>>;
  /** The request's id. */
  readonly id: string;
  caller: Caller | null;
  /** See {@link Call.reach}. */
  reach: Reach;
  /** See {@link Call.own}. */
  own: string | null;
  parameters: Readonly<Record<string, string>>;
  query: Call['query'];
  body: unknown;
  /** The Idempotency-Key. */
  key: string | undefined;
  reason: string | undefined;
  ifMatch: IfMatch | undefined;
  /** Position of the caller's last command through this process. */
  ownPosition: Position;
  /** The position that the view had passed before it was read; null unless exactly one view is read. */
  passed: Position | null;
  cacheEntry: CacheEntry | null;
  result: EndpointResponse | undefined;
  hasResponded: boolean;
  /** Lets the next large response begin. */
  endTurn: () => void;
}

/** @throws HttpError 401, 403 */
export function authenticate(exchange: Exchange): Promise<void> | undefined {
  const { endpoint, shared, request } = exchange;
  if (endpoint.scopes === null) return undefined;
  const { scopes, acceptsOwn } = endpoint;
  const caller = shared.authentication.authenticate(request, scopes, acceptsOwn);
  if (caller instanceof Promise) return caller.then((found) => setCaller(exchange, found));
  setCaller(exchange, caller);
  return undefined;
}

function setCaller(exchange: Exchange, caller: Caller): void {
  exchange.caller = caller;
  exchange.reach = caller.admin ? EVERY_NAMESPACE : caller.namespace;
  const { scopes, acceptsOwn = false } = exchange.endpoint;
  const hasWhole = caller.admin || scopes?.some((scope) => caller.scopes.includes(scope)) === true;
  exchange.own = acceptsOwn && !hasWhole ? caller.agentId : null;
  exchange.ownPosition = exchange.shared.ownWrites.of(caller.agentId);
}

/** @throws HttpError 413, 415, 400 for a body that is not JSON (or a form, for OAuth) */
export function readBody(exchange: Exchange): Promise<void> | undefined {
  const { method } = exchange.endpoint;
  return method === 'post' || method === 'put' ? readSentBody(exchange) : undefined;
}

async function readSentBody(exchange: Exchange): Promise<void> {
  const { endpoint, shared, request } = exchange;
  const limit = endpoint.maxBodyBytes ?? shared.dependencies.settings.maxBodyBytes;
  const isForm = endpoint.oauth === true && endpoint.body !== undefined;
  const sent = isForm
    ? await readForm(request, endpoint.body, limit)
    : await readJson(request, limit);
  const mayBeLeftOut = endpoint.body === undefined || endpoint.bodyOptional === true;
  exchange.body = sent === undefined && !mayBeLeftOut ? {} : sent;
}

/**
 * Checks the parameters of the path, the query and the body.
 * @throws HttpError 400; 404 for a namespace out of reach
 */
export function checkInput(exchange: Exchange): void {
  const { endpoint, request, body } = exchange;
  exchange.parameters = decodeParameters(exchange.pathParameters);
  const hasQuery = request.url.includes('?');
  if (hasQuery || endpoint.query !== undefined) {
    exchange.query = exchange.checkQuery(hasQuery ? request.query : {}) as Call['query'];
    narrow(exchange, exchange.query['namespace']);
  }
  if (body !== undefined) exchange.checkBody(body);
}

/** Narrows the reach to one namespace. @throws HttpError 404 for a namespace out of reach */
function narrow(exchange: Exchange, namespace: string | undefined): void {
  if (namespace === undefined || exchange.caller === null) return;
  if (!reaches(exchange.reach, namespace)) throw notFound('namespace', namespace);
  exchange.reach = namespace;
}

/** Reads `Idempotency-Key`, `X-Reason` and `If-Match`. @throws HttpError 400 for a malformed one */
export function readCommandHeaders(exchange: Exchange): void {
  const { endpoint, request, caller } = exchange;
  if (endpoint.idempotent === true && caller !== null) {
    exchange.key = checkKey(request.get('idempotency-key'));
  }
  const hasReason = endpoint.body?.properties?.['reason'] !== undefined;
  exchange.reason = hasReason ? reasonOfCommand(request, exchange.body) : reasonOf(request);
  if (endpoint.ifMatch === true) exchange.ifMatch = ifMatchOf(request);
}

/** The views from which the response is read; undefined if there are none. */
export function readsOf({
  endpoint: { reads, alsoReads },
  query,
}: Pick<Exchange, 'endpoint' | 'query'>): readonly Projection[] | undefined {
  return reads === undefined || alsoReads === undefined ? reads : [...reads, ...alsoReads(query)];
}

/**
 * Waits until the views have passed the caller's own commands, and `after`.
 * @throws HttpError 400 for an `after` that is not a position, 503 if the views do not reach it in time
 */
export async function waitForViews(exchange: Exchange): Promise<void> {
  const { endpoint, shared, query, ownPosition: own } = exchange;
  const { ownWrites, dependencies } = shared;
  const { cachedBy } = endpoint;
  const reads = readsOf(exchange);
  const { after } = query;
  if (reads === undefined) {
    // Data read from the log itself is visible as soon as it is appended.
    const isRead = endpoint.method === 'get' && endpoint.scopes !== null;
    if (after !== undefined && isRead) await ownWrites.wait([], own, after);
    return;
  }
  await ownWrites.wait(reads, own, after);
  // Looked up before the views are read, so the response is at least as new as this version.
  const reached = await ownWrites.reached(reads, later(own, after));
  // The stored checkpoint may lag behind `after`, although the views have reached `after`.
  const position = later(reached.position, after);
  if (position !== BEGINNING) setHeader(exchange.response, 'X-Read-Position', position);
  // Several views are read at different instants, so only the position that all had passed is
  // certain.
  if (reads.length === 1) exchange.passed = position;
  if (cachedBy === undefined || exchange.request.url.includes('?')) return;
  const version = ownWrites.versionOf(cachedBy, reached);
  if (version === null) return;
  // Responses depend on the caller's reach.
  const key = [exchange.reach, exchange.own ?? '', ...Object.values(exchange.parameters)].join('/');
  exchange.cacheEntry = { key, version: `${version}${dependencies.tools.revision}` };
}

/** Sends a cached response if its sources are unchanged. */
export function respondFromCache(exchange: Exchange): void {
  const { cache, cacheEntry, response } = exchange;
  const cached = cacheEntry === null ? undefined : cache.find(cacheEntry);
  if (cached === undefined) return;
  sendCached(response, cached);
  exchange.hasResponded = true;
}

/**
 * Waits for the caller's turn if the response may be large. A client that has left in the meantime gets no response.
 */
export function takeTurn(exchange: Exchange): Promise<void> | undefined {
  const { endpoint, shared, caller, response } = exchange;
  if (endpoint.hasLargeResponse !== true || caller === null) return undefined;
  return shared.largeResponses.takeTurn(caller.agentId, response).then((endTurn) => {
    exchange.endTurn = endTurn;
    exchange.hasResponded = response.closed;
  });
}

/** Calls the endpoint: in its own span, once for its Idempotency-Key, and checking `If-Match`. */
export async function handle(exchange: Exchange): Promise<void> {
  const { endpoint, shared, caller, response, ifMatch } = exchange;
  const { traces } = shared.dependencies.telemetry;
  const run = (call: Call): Promise<EndpointResponse> | EndpointResponse =>
    ifMatch === undefined
      ? endpoint.handle(call)
      : withIfMatch(ifMatch, () => endpoint.handle(call));
  const runOnce = (call: Call) => onceForKey(exchange, call, run);
  const call = callOf(exchange);
  const result =
    traces === undefined || endpoint.method === 'get'
      ? await runOnce(call)
      : await traceCommand(traces, response, call, runOnce);
  exchange.result = result;
  if (result.position && caller !== null) shared.ownWrites.note(caller.agentId, result.position);
}

/** Lets a stream or an export write its response itself, for as long as it takes. */
export function sendStream(exchange: Exchange): Promise<void> | undefined {
  const { endpoint, shared, caller, request, response, result } = exchange;
  if (result?.stream === undefined) return undefined;
  exchange.hasResponded = true;
  notMeasured(response);
  applyHeaders(response);
  const { scopes } = endpoint;
  // A stream that started with access to all records must not continue with access to the caller's
  // own records only.
  const variants = exchange.own === null ? [] : (scopes ?? []).map((scope) => `${scope}:own`);
  const admitting = [...(scopes ?? []), ...variants];
  const stillAdmitted = async (): Promise<boolean> =>
    caller === null || shared.authentication.stillAdmits(caller, admitting);
  return Promise.resolve(result.stream({ request, response, stillAdmitted }));
}

/** Sends the response, and caches it if allowed. */
export function sendBody({ result = {}, response, passed, cache, cacheEntry }: Exchange): void {
  if (cacheEntry !== null) {
    sendCached(response, cache.keep(cacheEntry, result));
    return;
  }
  const { status = 200, headers = {}, cookies, position, readPosition } = result;
  setHeaders(response, headers);
  if (position) setHeader(response, 'X-Event-Position', position);
  if (passed !== null && readPosition !== undefined && readPosition > passed) {
    setHeader(response, 'X-Read-Position', readPosition);
  }
  if (cookies !== undefined) response.setHeader('Set-Cookie', cookies);
  if (result.html !== undefined) endWithHtml(response, status, result.html);
  else if (result.json === undefined) sendJson(response, status, result.body);
  else endWithJson(response, status, result.json);
}

function sendCached(response: Response, { status, headers, json }: CachedResponse): void {
  setHeaders(response, headers);
  endWithJson(response, status, json);
}

function setHeaders(response: Response, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) setHeader(response, name, headers[name] ?? '');
}

const later = (position: Position, after: Position | undefined): Position =>
  after !== undefined && after > position ? after : position;

function onceForKey(
  { shared, caller, key, request, body }: Exchange,
  call: Call,
  run: (call: Call) => Promise<EndpointResponse> | EndpointResponse,
): Promise<EndpointResponse> | EndpointResponse {
  if (key === undefined || caller === null) return run(call);
  const { method, originalUrl: path } = request;
  const keyed = { agentId: caller.agentId, key, method, path, body };
  return shared.keys.once(keyed, call.context, async (commandId) =>
    run({ ...call, context: { ...call.context, commandId } }),
  );
}

function callOf(exchange: Exchange): Call {
  const { shared, request, response, caller, reach, own, parameters } = exchange;
  const { query, body } = exchange;
  const { dependencies } = shared;
  const now = dependencies.clock.now();
  const address = request.ip ?? '';
  return {
    dependencies,
    action: exchange.action,
    caller,
    reach,
    own,
    parameters,
    query,
    body,
    ownPosition: exchange.ownPosition,
    address,
    context: {
      commandId: newId(now),
      actor: caller?.agentId ?? ANONYMOUS,
      source: address,
      correlationId: exchange.id,
      reason: exchange.reason,
      traceparent: spanOf(response)?.traceparent ?? traceparentOf(request),
      namespace: caller?.namespace,
      now,
    },
    depth: async (what) => {
      const ticket = request.headers[CAUSE_HEADER];
      return typeof ticket === 'string' ? dependencies.depthOfRequest(ticket, what) : 0;
    },
    base: () => baseOf(request, dependencies.settings),
    request,
    identify: () => shared.authentication.callerOf(request),
    keyed: exchange.key !== undefined,
    expectedRevision: exchange.ifMatch?.seen,
    gone: () => closeSignal(response),
  };
}

/**
 * The parameters of the path, decoded; ids in lower case.
 * @throws HttpError 400 for an id that is no UUID; URIError for malformed percent-encoding
 */
function decodeParameters(
  sent: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {};
  for (const [name, encoded] of Object.entries(sent)) {
    const value = decodeURIComponent(encoded);
    const isId = name.endsWith('id');
    if (isId && !isUuid(value)) throw badRequest([{ field: name, issue: 'must be a UUID' }]);
    parameters[name] = isId ? value.toLowerCase() : value;
  }
  return parameters;
}

/** Aborts once the response has closed. */
function closeSignal(response: Response): AbortSignal {
  const closed = new AbortController();
  if (response.closed) closed.abort();
  else response.once('close', () => closed.abort());
  return closed.signal;
}
