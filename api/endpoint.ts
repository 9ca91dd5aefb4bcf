import type { Static, TSchema } from '@sinclair/typebox';
import type { Request, Response } from 'express';
import type { Instant } from '../domain/clock.ts';
import type { CommandContext, SeenRevision } from '../domain/handle.ts';
import { nameBasedId, newId } from '../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../domain/namespaces/namespace.ts';
import type { Position } from '../domain/event-store.ts';
import type { CausedKind } from '../domain/vocabulary.ts';
import type { Reach } from '../projections/reach.ts';
import type { Projection } from '../projections/read-model.ts';
import type { Responses } from './schemas/response-schemas.ts';
import type { ApiDependencies } from './dependencies.ts';
import type { ErrorCode } from './errors.ts';

/** The agent that calls, as it is now. */
export interface Caller {
  readonly agentId: string;
  /** The agent's own. With the scope `admin`, it reaches the others too. */
  readonly namespace: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Has the scope `admin`, which implies all. */
  readonly admin: boolean;
  /** Null for an API key, and for a token of another issuer. */
  readonly sessionId: string | null;
  /** Null for a token. */
  readonly keyId: string | null;
  /** When the token or key expires; Infinity for a key that does not. */
  readonly expiresAt: Instant;
}

/** The actor of commands without an agent: callbacks, whose token is their credential. */
export const ANONYMOUS = 'anonymous';

/** A request that has passed authentication and validation. */
export interface Call<Body = unknown, Query = Record<string, string | undefined>> {
  readonly dependencies: ApiDependencies;
  /** Method and path as the interface's description writes them: `GET /tasks/{id}`. */
  readonly action: string;
  /** null on endpoints that need no token. */
  readonly caller: Caller | null;
  /**
   * What the caller sees: its own namespace; an admin every one, or the one that `?namespace=` names. Everything else is
   * answered as if it did not exist.
   */
  readonly reach: Reach;
  /** The caller's id where it has only an `:own` variant of the scope: it sees only what is its own. Else null. */
  readonly own: string | null;
  /** Of the path; ids in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** Position of the caller's last command through this process. */
  readonly ownPosition: Position;
  /** Address of the client, behind trusted proxies. */
  readonly address: string;
  /** Of a command: its actor, its reason, and the id from which its events' ids derive. */
  readonly context: CommandContext;
  /**
   * The depth of a run or an event that the request causes: 0, unless an extension makes it for a run or an event.
   * @throws RefusalError `STATE_CONFLICT` where its chain of runs would become too long
   */
  readonly depth: (what: CausedKind) => Promise<number>;
  /** The address at which the client reaches the service, without a trailing slash. */
  readonly base: () => string;
  /** The request itself, for what browsers send along. */
  readonly request: Request;
  /** The caller on endpoints that need no token; null without a valid one. */
  readonly identify: () => Promise<Caller | null>;
  /** The command carries an Idempotency-Key, from which the ids of what it creates derive. */
  readonly keyed: boolean;
  /** Revisions of `If-Match`; undefined without one. */
  readonly expectedRevision: SeenRevision | undefined;
  /** A signal that aborts once the client has left or has its response. */
  readonly gone: () => AbortSignal;
}

/** What an endpoint responds with: a body, its JSON, or a stream. */
export interface EndpointResponse {
  readonly status?: number;
  readonly body?: unknown;
  /** The body as JSON, already serialized. */
  readonly json?: string;
  /** The body as a page. */
  readonly html?: string;
  /** Position of the snapshot that was read; default: what the views had passed before. */
  readonly readPosition?: Position;
  readonly headers?: Readonly<Record<string, string>>;
  /** Values of `Set-Cookie`. */
  readonly cookies?: readonly string[];
  /** Position of the command's last event: later reads of the same agent wait for it. */
  readonly position?: Position | null;
  /** Writes the response itself, for as long as it takes. May throw until it has sent something. */
  readonly stream?: (streaming: Streaming) => Promise<void>;
}

/** What a streamed response works with. */
export interface Streaming {
  readonly request: Request;
  readonly response: Response;
  /** Whether the caller would still be admitted. */
  readonly stillAdmitted: () => Promise<boolean>;
}

export type Method = 'get' | 'post' | 'put' | 'delete';

/**
 * An endpoint: what it takes, who may call it, what it does. Validators, routes and the description of the interface
 * all derive from it.
 */
export interface Endpoint {
  readonly method: Method;
  /** One path or several synonyms; `:id` stands for a UUID. */
  readonly paths: readonly [string, ...string[]];
  /** Method name in a generated client, at most 35 characters; further paths append `Alias`. */
  readonly operationId: string;
  /** One line. */
  readonly summary: string;
  /** What the summary leaves out. */
  readonly description?: string;
  /** Any one of these (or `admin`) suffices; null: no token needed; empty: any valid token. */
  readonly scopes: readonly string[] | null;
  /** The `:own` variant of a scope suffices too: the handler heeds {@link Call.own}. Default: it does not. */
  readonly acceptsOwn?: boolean;
  readonly body?: TSchema;
  readonly bodyOptional?: boolean;
  /** Bytes of a body. Default: `SVC_MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number;
  /** People open it in a browser, which shows errors as pages. */
  readonly page?: boolean;
  /**
   * An endpoint of OAuth 2.0 (RFC 6749): it takes a form instead of JSON and ignores unknown fields. Bad input is
   * answered as that RFC prescribes.
   */
  readonly oauth?: boolean;
  /** Query parameters, which arrive as strings; others are rejected. Default: none. */
  readonly query?: TSchema;
  /** Views that the response is read from: a read waits until they have passed the caller's own commands. */
  readonly reads?: readonly Projection[];
  /**
   * The views that, with the path and the registered tools, determine the response, whoever asks and whenever. It is
   * cached until one of them changes; requests with a query are not.
   */
  readonly cachedBy?: readonly Projection[];
  /** Responses may have megabytes: a few are made at a time, with turns among the callers. */
  readonly hasLargeResponse?: boolean;
  /** A command that may carry an Idempotency-Key. */
  readonly idempotent?: boolean;
  /** A command that heeds `If-Match`. */
  readonly ifMatch?: boolean;
  /** Successful responses, by status; the tests check every response against them. */
  readonly responses: Responses;
  /** Headers of those responses, beside the ones that follow from the rest. */
  readonly responseHeaders?: readonly ResponseHeader[];
  /** Errors beside those that follow from the rest, such as a 404 without an id in the path. */
  readonly refusals?: readonly ErrorCode[];
  readonly handle: (call: Call) => Promise<EndpointResponse> | EndpointResponse;
}

/** Headers that not every response of a kind has. */
export const responseHeaders = ['ETag', 'Location', 'X-Total-Count'] as const;
export type ResponseHeader = (typeof responseHeaders)[number];

type Route = `${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`;

/** The schema's type; the default where the endpoint declares no schema. */
type TypeOf<Schema extends TSchema, Default> = TSchema extends Schema ? Default : Static<Schema>;

/**
 * Declares an endpoint; `handle` receives body and query with the types of their schemas.
 * @param definition.aliases further paths of the same endpoint
 */
export function endpoint<
  Body extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Optional extends boolean = false,
>(
  route: Route,
  definition: Omit<Endpoint, 'method' | 'paths' | 'handle' | 'body' | 'query' | 'bodyOptional'> & {
    readonly aliases?: readonly string[];
    readonly body?: Body;
    readonly bodyOptional?: Optional;
    readonly query?: Query;
    readonly handle: (
      call: Call<
        TypeOf<Body, unknown> | (Optional extends true ? undefined : never),
        TypeOf<Query, Record<string, string | undefined>>
      >,
    ) => Promise<EndpointResponse> | EndpointResponse;
  },
): Endpoint {
  const [method = '', path = ''] = route.split(' ');
  const { aliases = [], ...rest } = definition;
  const declared = { method: method.toLowerCase(), paths: [path, ...aliases], ...rest };
  // The schemas are checked before `handle` is called, so that the types hold there.
  return declared as unknown as Endpoint;
}

/** The id in a parameter of the path, such as `task_id` of `/task/:task_id/latest`. */
export function idIn({ parameters }: Pick<Call, 'parameters'>, name: string): string {
  const id = parameters[name];
  if (id === undefined) throw new Error(`the endpoint's path has no parameter ${name}`);
  return id;
}

/** The id of what a command creates: new, or derived from its Idempotency-Key. */
export function createdId(
  kind: string,
  { keyed, context }: Pick<Call, 'keyed' | 'context'>,
): string {
  return keyed ? nameBasedId(kind, context.commandId) : newId(context.now);
}

/** The namespace on whose quotas a request counts. */
export const namespaceOfCaller = ({ caller }: Pick<Call, 'caller'>): string =>
  caller?.namespace ?? DEFAULT_NAMESPACE;

/** The response to a command that shows no resource. @param position of its last event */
export function success(
  message: string,
  details: object,
  position: Position | null = null,
): Pick<EndpointResponse, 'body' | 'position'> {
  return { body: { success: true, message, details }, position };
}

/** The header that names a resource's revision. */
export const etag = (revision: number | 'none') => ({ ETag: `"${revision}"` });
