import type { Express, Request, Response } from 'express';
import { BEGINNING, type Position } from '../domain/event-store.ts';
import { isUuid, newId } from '../domain/ids.ts';
import { Authentication } from './authentication.ts';
import { readJson } from './body.ts';
import type { ApiDependencies } from './dependencies.ts';
import type { Answer, Call, Caller, Endpoint } from './endpoint.ts';
import { badRequest } from './errors.ts';
import { checkKey, commandIdOf, once } from './idempotency.ts';
import { OwnWrites } from './own-writes.ts';
import { bodyCheck, queryCheck } from './validation.ts';

/** What all endpoints of one process share. */
export interface Shared {
  readonly dependencies: ApiDependencies;
  readonly authentication: Authentication;
  readonly ownWrites: OwnWrites;
}

export function share(dependencies: ApiDependencies): Shared {
  return {
    dependencies,
    authentication: new Authentication(dependencies),
    ownWrites: new OwnWrites(dependencies),
  };
}

/**
 * Serves an endpoint. The order of the steps is the order in which faults are told: token, scope, body, schema,
 * and only then what the endpoint itself finds.
 */
export function mount(app: Express, endpoint: Endpoint, shared: Shared): void {
  const serve = servant(endpoint, shared);
  for (const path of endpoint.paths) app[endpoint.method](path, serve);
}

function servant(endpoint: Endpoint, shared: Shared) {
  const { dependencies, authentication, ownWrites } = shared;
  const { settings, store } = dependencies;
  const checkBody = endpoint.body === undefined ? null : bodyCheck(endpoint.body);
  const checkQuery = endpoint.query === undefined ? null : queryCheck(endpoint.query);
  const takesBody = endpoint.method === 'post' || endpoint.method === 'put';

  return async (request: Request, response: Response): Promise<void> => {
    const requestId = String(response.getHeader('X-Request-Id'));
    const caller =
      endpoint.scopes === null
        ? null
        : await authentication.authenticate(request.headers.authorization, endpoint.scopes);
    const body = takesBody ? await readJson(request, settings.maxBodyBytes) : undefined;
    checkParameters(request);
    if (checkBody !== null && !(body === undefined && endpoint.bodyOptional)) checkBody(body ?? {});
    else if (checkBody === null && body !== undefined) checkEmpty(body);
    const query = checkQuery === null ? request.query : checkQuery(request.query);
    const key = endpoint.idempotent ? checkKey(request.get('idempotency-key')) : undefined;
    const ownPosition = caller === null ? BEGINNING : ownWrites.of(caller.agentId);
    const given = { dependencies, requestId, caller, body, query, key, ownPosition };
    const call = callOf(request, given);
    if (endpoint.reads !== undefined) {
      const after = typeof request.query['after'] === 'string' ? request.query['after'] : undefined;
      await ownWrites.wait(endpoint.reads, caller?.agentId ?? null, after);
    }
    const carryOut = async (): Promise<Answer> => endpoint.handle(call);
    const answer =
      key === undefined || caller === null
        ? await carryOut()
        : await once(
            store,
            {
              agentId: caller.agentId,
              key,
              method: request.method,
              path: request.originalUrl,
              body,
            },
            call.context,
            carryOut,
          );
    if (answer.position && caller !== null) ownWrites.note(caller.agentId, answer.position);
    if (endpoint.reads !== undefined && endpoint.method === 'get') {
      response.set('X-Read-Position', await ownWrites.reached(endpoint.reads));
    }
    send(response, answer);
  };
}

function callOf(
  request: Request,
  given: {
    readonly dependencies: ApiDependencies;
    readonly requestId: string;
    readonly caller: Caller | null;
    readonly body: unknown;
    readonly query: unknown;
    readonly key: string | undefined;
    readonly ownPosition: Position;
  },
): Call {
  const { dependencies, requestId, caller, key } = given;
  const now = dependencies.clock.now();
  const actor = caller?.agentId ?? 'anonymous';
  const address = request.ip ?? '';
  return {
    dependencies,
    requestId,
    caller,
    parameters: request.params as Record<string, string>,
    query: given.query as Record<string, string | undefined>,
    body: given.body,
    ownPosition: given.ownPosition,
    address,
    context: {
      commandId: key === undefined || caller === null ? newId(now) : commandIdOf(actor, key),
      actor,
      source: address,
      correlationId: requestId,
      reason: reasonOf(request),
      traceparent: request.get('traceparent'),
      now,
    },
    keyed: key !== undefined && caller !== null,
    expectedRevision: expectedRevision(request),
  };
}

function reasonOf(request: Request): string | undefined {
  const reason = request.get('x-reason');
  if (reason === undefined || reason === '') return undefined;
  if (reason.length > 500) {
    throw badRequest([{ field: 'X-Reason', issue: 'must have at most 500 characters' }]);
  }
  return reason;
}

/** `If-Match: "<revision>"`; `*` matches whatever exists, as does no header. */
function expectedRevision(request: Request): number | undefined {
  const header = request.get('if-match');
  if (header === undefined || header.trim() === '*') return undefined;
  const revision = /^(?:W\/)?"?(\d{1,15})"?$/.exec(header.trim())?.[1];
  if (revision === undefined) {
    throw badRequest([{ field: 'If-Match', issue: 'must be an ETag of this service' }]);
  }
  return Number(revision);
}

function checkParameters(request: Request): void {
  for (const [name, value] of Object.entries(request.params)) {
    if (name.endsWith('id') && !isUuid(String(value))) {
      throw badRequest([{ field: name, issue: 'must be a UUID' }]);
    }
  }
}

/** A command without fields takes no body, or an empty object. */
function checkEmpty(body: unknown): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (!isObject) throw badRequest([{ field: 'body', issue: 'must be an object' }]);
  const [field] = Object.keys(body);
  if (field !== undefined) throw badRequest([{ field, issue: 'is not a known field' }]);
}

function send(response: Response, answer: Answer): void {
  if (answer.headers !== undefined) response.set(answer.headers);
  if (answer.position) response.set('X-Event-Position', answer.position);
  response.status(answer.status ?? 200).json(answer.body);
}
