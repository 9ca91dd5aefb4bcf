import type { Request, RequestHandler, Response } from 'express';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { isUuid, newId } from '../../domain/ids.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { endWith, layOpen, requestIdOf, setHeader } from './answer-headers.ts';
import { Authentication } from '../access/authentication.ts';
import { readJson } from './body.ts';
import { BulkyAnswers } from './bulky-answers.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Answer, Call, Endpoint } from '../endpoint.ts';
import { HttpError, OAuthError, badRequest } from '../errors.ts';
import { readForm } from './form.ts';
import { reasonOf, reasonOfCommand, traceparentOf } from './headers.ts';
import { IdempotencyKeys, checkKey } from './idempotency.ts';
import { holdingTo, ifMatchOf } from './if-match.ts';
import { KeptAnswers, type KeptAnswer } from './kept-answers.ts';
import { notMeasured, takenBy, writtenPath } from './measuring.ts';
import { OwnWrites } from './own-writes.ts';
import { beingMade } from './projection-state.ts';
import { baseOf } from '../access/public-address.ts';
import { RefusedRequests, type Failed } from '../access/refused-requests.ts';
import { Routes } from './routes.ts';
import { sendJson } from './sending.ts';
import { spanOf, traceCommand } from './tracing.ts';
import { bodyCheck, queryCheck } from './validation.ts';

/** What all endpoints of one process share. */
export interface Shared {
  readonly dependencies: ApiDependencies;
  readonly authentication: Authentication;
  readonly ownWrites: OwnWrites;
  readonly keys: IdempotencyKeys;
  readonly bulky: BulkyAnswers;
  readonly refused: RefusedRequests;
}

export function share(dependencies: ApiDependencies): Shared {
  const { store, clock, telemetry } = dependencies;
  const authentication = new Authentication(dependencies);
  return {
    dependencies,
    authentication,
    ownWrites: new OwnWrites(dependencies),
    keys: new IdempotencyKeys(store, clock, telemetry.log),
    bulky: new BulkyAnswers(),
    refused: new RefusedRequests(dependencies, authentication),
  };
}

/** Serves endpoints; a path of theirs with another method is answered as unknown, saying which ones it has. */
export function serveAll(endpoints: readonly Endpoint[], shared: Shared): RequestHandler {
  const routes = new Routes<{ readonly written: string; readonly serve: Serve }>();
  for (const endpoint of endpoints) {
    const serve = servant(endpoint, shared);
    for (const path of endpoint.paths) {
      routes.add(endpoint.method.toUpperCase(), path, { written: writtenPath(path), serve });
    }
  }
  return (request, response, next) => {
    const led = routes.find(request.method, request.path);
    if (led === null) {
      next();
      return undefined;
    }
    if (led.taker !== null) {
      takenBy(response, led.taker.written);
      return led.taker.serve(request, response, led.parameters);
    }
    takenBy(response, writtenPath(led.path));
    layOpen(response);
    answerOtherMethod(request, response, led.methods);
    return undefined;
  };
}

/**
 * Answers a request by a method that its path does not have: `OPTIONS` with those that it has, others as unknown.
 * @throws HttpError 404, with the header `Allow` set
 */
export function answerOtherMethod(
  request: Request,
  response: Response,
  methods: readonly string[],
): void {
  const more = methods.includes('GET') ? ['HEAD', 'OPTIONS'] : ['OPTIONS'];
  response.set('Allow', [...methods, ...more].join(', '));
  if (request.method !== 'OPTIONS') throw unknownPath(request);
  response.status(204).end();
}

/** @param given the parameters of the path, as they were sent */
type Serve = (request: Request, response: Response, given: Given) => Promise<void>;
type Given = Readonly<Record<string, string>>;

/** There is nothing here. */
export function unknownPath({ method, path }: Request): HttpError {
  const details = { resource: 'path', id: path };
  return new HttpError('not_found', `there is no ${method} ${path}`, details);
}

/**
 * Serves an endpoint. The order of the steps is the order in which faults are told: token, scope, body, schema,
 * and only then what the endpoint itself finds.
 */
function servant(endpoint: Endpoint, shared: Shared): Serve {
  const { dependencies, authentication, ownWrites, keys, bulky, refused } = shared;
  const { reads } = endpoint;
  const action = `${endpoint.method.toUpperCase()} ${writtenPath(endpoint.paths[0])}`;
  const checkBody = endpoint.body === undefined ? checkEmpty : bodyCheck(endpoint.body);
  const checkQuery = queryCheck(endpoint.query);
  const takesBody = endpoint.method === 'post' || endpoint.method === 'put';
  const isRead = endpoint.method === 'get' && endpoint.scopes !== null;
  const { follows } = endpoint;
  const kept = new KeptAnswers();
  const saysWhy = endpoint.body?.properties['reason'] !== undefined;
  const mayBeLeftOut = endpoint.body === undefined || endpoint.bodyOptional === true;

  const serve = async (
    request: Request,
    response: Response,
    given: Given,
    seen: Seen,
  ): Promise<void> => {
    // What is at hand is not waited for: each time costs as much as the finding.
    const calling =
      endpoint.scopes === null ? null : authentication.authenticate(request, endpoint.scopes);
    const caller = calling instanceof Promise ? await calling : calling;
    const sent = takesBody
      ? await readBody(endpoint, request, dependencies.settings.maxBodyBytes)
      : undefined;
    seen.body = sent;
    const parameters = parametersOf(given);
    const hasQuery = request.url.includes('?');
    const asked = hasQuery ? (request.query as Record<string, unknown>) : noQuery;
    const query = hasQuery || endpoint.query !== undefined ? checkQuery(asked) : noQuery;
    const body = sent === undefined && takesBody && !mayBeLeftOut ? {} : sent;
    if (body !== undefined) checkBody(body);
    const key =
      endpoint.idempotent && caller !== null ? checkKey(request.get('idempotency-key')) : undefined;
    const reason = saysWhy ? reasonOfCommand(request, body) : reasonOf(request);
    const ifMatch = endpoint.ifMatch === true ? ifMatchOf(request) : undefined;
    const ownPosition = caller === null ? BEGINNING : ownWrites.of(caller.agentId);
    let keeping: Keeping | null = null;
    let passedBefore: Position | null = null;
    const { after } = query as { readonly after?: string };
    if (reads === undefined) {
      // What is read from the log itself is there as soon as it stands there.
      if (after !== undefined && isRead) await ownWrites.wait([], ownPosition, after);
    } else {
      const waiting = ownWrites.wait(reads, ownPosition, after);
      if (waiting !== null) await waiting;
      // Before the reading: the answer has seen at least that much.
      const passed = after !== undefined && after > ownPosition ? after : ownPosition;
      const looking = ownWrites.reached(reads, passed);
      const reached = looking instanceof Promise ? await looking : looking;
      // How far a view is, is kept a little later than it has come; `after` was waited for.
      const position = after !== undefined && after > reached.position ? after : reached.position;
      if (position !== BEGINNING) setHeader(response, 'X-Read-Position', position);
      // Of several views, each was read at an instant of its own: what all had passed before is what holds.
      if (reads.length === 1) passedBefore = position;
      if (follows !== undefined && !hasQuery) {
        const version = ownWrites.versionOf(follows, reached);
        if (version !== null) {
          const of = `${version}${dependencies.tools.revision}`;
          keeping = { key: Object.values(parameters).join('/'), version: of };
          const known = kept.find(keeping.key, of);
          if (known !== undefined) {
            sendKept(response, known);
            return;
          }
        }
      }
    }
    const address = request.ip ?? '';
    const call: Call = {
      dependencies,
      caller,
      parameters,
      query: query as Call['query'],
      body,
      ownPosition,
      address,
      context: contextOf({ request, response, caller, address, reason }, dependencies),
      base: () => baseOf(request, dependencies.settings),
      keyed: key !== undefined,
      expectedRevision: ifMatch?.seen,
      gone: () => endOf(response),
    };
    const handle = (made: Call): Promise<Answer> | Answer =>
      ifMatch === undefined
        ? endpoint.handle(made)
        : holdingTo(ifMatch, () => endpoint.handle(made));
    const carryOut = (made: Call): Promise<Answer> | Answer =>
      key === undefined || caller === null
        ? handle(made)
        : keys.once(
            {
              agentId: caller.agentId,
              key,
              method: request.method,
              path: request.originalUrl,
              body,
            },
            made.context,
            async (commandId) => handle({ ...made, context: { ...made.context, commandId } }),
          );
    if (endpoint.bulky === true && caller !== null) {
      await bulky.inTurn(caller.agentId, response, async () => {
        seen.answer = await endpoint.handle(call);
        send(response, seen.answer, passedBefore);
      });
      return;
    }
    const answer =
      dependencies.telemetry.traces === undefined || endpoint.method === 'get'
        ? await carryOut(call)
        : await traceCommand(dependencies.telemetry.traces, response, action, call, carryOut);
    if (answer.position && caller !== null) ownWrites.note(caller.agentId, answer.position);
    seen.answer = answer;
    if (answer.stream === undefined) {
      if (keeping === null) send(response, answer, passedBefore);
      else sendKept(response, kept.keep(keeping.key, keeping.version, answer));
      return;
    }
    notMeasured(response);
    layOpen(response);
    const counts = async (): Promise<boolean> =>
      caller === null || authentication.stillCounts(caller, endpoint.scopes ?? []);
    await answer.stream({ request, response, counts });
  };

  return async (request, response, given) => {
    const seen: Seen = { body: undefined, answer: undefined };
    const failed = (): Failed => {
      const { body } = seen;
      return { request, action, body, now: dependencies.clock.now(), id: requestIdOf(response) };
    };
    try {
      await serve(request, response, given, seen);
    } catch (thrown) {
      const error = endpoint.oauth === true ? asOfOAuth(thrown) : thrown;
      refused.thrown(error, failed());
      const isMissing = error instanceof ReadModelError && error.code === 'NO_VIEW';
      throw isMissing ? await beingMade(dependencies, reads ?? dependencies.projections) : error;
    }
    // Of a command with an Idempotency-Key a refusal is an answer.
    if ((seen.answer?.status ?? 200) >= 400) refused.answered(seen.answer?.body, failed());
  };
}

function readBody(endpoint: Endpoint, request: Request, limit: number): Promise<unknown> {
  return endpoint.oauth === true && endpoint.body !== undefined
    ? readForm(request, endpoint.body, limit)
    : readJson(request, limit);
}

/** Input at fault has a code of its own in OAuth. */
const asOfOAuth = (error: unknown): unknown =>
  error instanceof HttpError && error.code === 'bad_request' && !(error instanceof OAuthError)
    ? new OAuthError('invalid_request', error.message)
    : error;

/** Under what an answer is kept. */
interface Keeping {
  readonly key: string;
  readonly version: string;
}

const noQuery: Readonly<Record<string, unknown>> = {};

/** What was found out about a request on the way. */
interface Seen {
  body: unknown;
  answer: Answer | undefined;
}

function contextOf(
  of: Pick<Call, 'caller' | 'address'> & {
    readonly request: Request;
    readonly response: Response;
    readonly reason: string | undefined;
  },
  { clock }: ApiDependencies,
): Call['context'] {
  const { request, response, caller, address, reason } = of;
  const now = clock.now();
  return {
    commandId: newId(now),
    actor: caller?.agentId ?? 'anonymous',
    source: address,
    correlationId: requestIdOf(response),
    reason,
    traceparent: spanOf(response)?.traceparent ?? traceparentOf(request),
    now,
  };
}

/**
 * The parameters of the path, decoded; ids in lower case.
 * @throws HttpError 400 for an id that is no UUID; URIError for what can't be decoded
 */
function parametersOf(given: Given): Given {
  const parameters: Record<string, string> = {};
  for (const [name, sent] of Object.entries(given)) {
    const text = decodeURIComponent(sent);
    if (!name.endsWith('id')) {
      parameters[name] = text;
      continue;
    }
    if (!isUuid(text)) throw badRequest([{ field: name, issue: 'must be a UUID' }]);
    parameters[name] = text.toLowerCase();
  }
  return parameters;
}

/** A command without fields takes no body, or an empty object. */
function checkEmpty(body: unknown): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (!isObject) throw badRequest([{ field: 'body', issue: 'must be object' }]);
  const [field] = Object.keys(body);
  if (field === undefined) return;
  const elsewhere = field === 'reason' ? '; X-Reason takes a reason' : '';
  throw badRequest([{ field, issue: `is not a known field${elsewhere}` }]);
}

/** Aborted once a response is over. */
function endOf(response: Response): AbortSignal {
  const over = new AbortController();
  if (response.closed) over.abort();
  else response.once('close', () => over.abort());
  return over.signal;
}

function sendKept(response: Response, { status, headers, text }: KeptAnswer): void {
  for (const name in headers) setHeader(response, name, headers[name] ?? '');
  endWith(response, status, text);
}

/** @param passed what the one view that was read had passed before; null where there is not one */
function send(response: Response, answer: Answer, passed: Position | null): void {
  for (const name in answer.headers) setHeader(response, name, answer.headers[name] ?? '');
  if (answer.position) setHeader(response, 'X-Event-Position', answer.position);
  const { readPosition } = answer;
  // Where `after` was given, the view has passed that, though its checkpoint may be kept later.
  if (passed !== null && readPosition !== undefined && readPosition > passed) {
    setHeader(response, 'X-Read-Position', readPosition);
  }
  if (answer.text === undefined) sendJson(response, answer.status ?? 200, answer.body);
  else endWith(response, answer.status ?? 200, answer.text);
}
