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

/** The calling agent in its present state. */
export interface Caller {
  readonly agentId: string;
  /** The agent's own namespace. With the scope `admin`, it can also reach the others. */
  readonly namespace: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Has the scope `admin`, which implies all. */
  readonly admin: boolean;
  /** The session's id; null for an API key and for a token of another issuer. */
  readonly sessionId: string | null;
  /** The id of the API key; null for a token. */
  readonly keyId: string | null;
  /** When the token or key expires; Infinity for a key that does not. */
  readonly expiresAt: Instant;
}

/** The actor of commands without an agent, such as callbacks, whose token is their credential. */
export const ANONYMOUS = 'anonymous';

/** A request that has passed authentication and validation. */
export interface Call<Body = unknown, Query = Record<string, string | undefined>> {
  readonly dependencies: ApiDependencies;
  /** Method and path as the interface's description writes them: `GET /tasks/{id}`. */
  readonly action: string;
  /** null on endpoints that need no token. */
  readonly caller: Caller | null;
  /**
   * The namespaces that the caller sees: its own; for an admin, every namespace or the one that `?namespace=` names.
   * Records of other namespaces are treated as if they did not exist.
   */
  readonly reach: Reach;
  /**
   * The caller's id if it has only an `:own` variant of the scope, and so sees only its own records; otherwise null.
   */
  readonly own: string | null;
  /** Parameters of the path; ids in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** Position of the caller's last command through this process. */
  readonly ownPosition: Position;
  /** Address of the client, behind trusted proxies. */
  readonly address: string;
  /** The context of a command: its actor, its reason, and the id from which its events' ids derive. */
  readonly context: CommandContext;
  /**
   * The depth of a run or event that the request causes. It is 0 unless an extension makes the request on behalf of a
   * run or an event.
   * @throws RefusalError `STATE_CONFLICT` if its chain of runs would become too long
   */
  readonly depth: (what: CausedKind) => Promise<number>;
  /** The address at which the client reaches the service, without a trailing slash. */
  readonly base: () => string;
  /** The request itself, for the headers that browsers send. */
  readonly request: Request;
  /** The caller on endpoints that need no token; null without a valid one. */
  readonly identify: () => Promise<Caller | null>;
  /** Whether the command carries an Idempotency-Key, from which the ids of the created objects derive. */
  readonly keyed: boolean;
  /** Revisions of `If-Match`; undefined without one. */
  readonly expectedRevision: SeenRevision | undefined;
  /** A signal that aborts once the client has left or has received its response. */
  readonly gone: () => AbortSignal;
}

/** The response of an endpoint: a body, its JSON, or a stream. */
export interface EndpointResponse {
  readonly status?: number;
  readonly body?: unknown;
  /** The body as JSON, already serialized. */
  readonly json?: string;
  /** The body as an HTML page. */
  readonly html?: string;
  /** Position of the snapshot that was read; default: the position that the views had passed before the read. */
  readonly readPosition?: Position;
  readonly headers?: Readonly<Record<string, string>>;
  /** Values of `Set-Cookie`. */
  readonly cookies?: readonly string[];
  /** Position of the command's last event: later reads of the same agent wait for it. */
  readonly position?: Position | null;
  /** Writes the response itself, for as long as it takes. May throw until it has sent something. */
  readonly stream?: (streaming: Streaming) => Promise<void>;
}

/** The dependencies of a streamed response. */
export interface Streaming {
  readonly request: Request;
  readonly response: Response;
  /** Whether the caller would still be admitted. */
  readonly stillAdmitted: () => Promise<boolean>;
}

export type Method = 'get' | 'post' | 'put' | 'delete';

/**
 * An endpoint: its input, its callers and its action. Validators, routes and the description of the interface all
 * derive from it.
 */
export interface Endpoint {
  readonly method: Method;
  /** One path or several synonyms; `:id` stands for a UUID. */
  readonly paths: readonly [string, ...string[]];
  /** Method name in a generated client, at most 35 characters; further paths append `Alias`. */
  readonly operationId: string;
  /** One line. */
  readonly summary: string;
  /** Details that the summary leaves out. */
  readonly description?: string;
  /** Any one of these (or `admin`) suffices; null: no token needed; empty: any valid token. */
  readonly scopes: readonly string[] | null;
  /**
   * Whether the `:own` variant of a scope also suffices. The handler must then respect {@link Call.own}. Default: no.
   */
  readonly acceptsOwn?: boolean;
  readonly body?: TSchema;
  readonly bodyOptional?: boolean;
  /** The largest body in bytes. Default: `SVC_MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number;
  /** People open it in a browser, so errors are pages. */
  readonly page?: boolean;
  /**
   * An endpoint of OAuth 2.0 (RFC 6749): it takes a form instead of JSON and ignores unknown fields. Bad input is
   * answered as that RFC prescribes.
   */
  readonly oauth?: boolean;
  /** Query parameters, which arrive as strings; others are rejected. Default: none. */
  readonly query?: TSchema;
  /** Views from which the response is read. A read waits until they include the caller's own commands. */
  readonly reads?: readonly Projection[];
  /** Further views, from which only some queries are read. */
  readonly alsoReads?: (query: Call['query']) => readonly Projection[];
  /**
   * The views that determine the response, together with the path and the registered tools. The response depends on
   * neither the caller nor the time, so it is cached until one of these changes. Requests with a query are not cached.
   */
  readonly cachedBy?: readonly Projection[];
  /** Responses may be megabytes in size, so only a few are built at a time, and callers take turns. */
  readonly hasLargeResponse?: boolean;
  /** A command that may carry an Idempotency-Key. */
  readonly idempotent?: boolean;
  /** A command that heeds `If-Match`. */
  readonly ifMatch?: boolean;
  /** Schemas of successful responses, by status. The tests check every response against them. */
  readonly responses: Responses;
  /** Further headers of those responses, in addition to those that follow from the other fields. */
  readonly responseHeaders?: readonly ResponseHeader[];
  /** Errors in addition to those that follow from the other fields, such as a 404 without an id in the path. */
  readonly refusals?: readonly ErrorCode[];
  readonly handle: (call: Call) => Promise<EndpointResponse> | EndpointResponse;
}

/** Headers that not every response of a kind has. */
export const responseHeaders = ['ETag', 'Location', 'X-Total-Count'] as const;
export type ResponseHeader = (typeof responseHeaders)[number];

type Route = `${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`;

/** The schema's type; the default if the endpoint declares no schema. */
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
  definition: Omit<
    Endpoint,
    'method' | 'paths' | 'handle' | 'body' | 'query' | 'bodyOptional' | 'alsoReads'
  > & {
    readonly aliases?: readonly string[];
    readonly body?: Body;
    readonly bodyOptional?: Optional;
    readonly query?: Query;
    readonly alsoReads?: (
      query: TypeOf<Query, Record<string, string | undefined>>,
    ) => readonly Projection[];
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

/** The id of the object that a command creates: new, or derived from its Idempotency-Key. */
export function createdId(
  kind: string,
  { keyed, context }: Pick<Call, 'keyed' | 'context'>,
): string {
  return keyed ? nameBasedId(kind, context.commandId) : newId(context.now);
}

/** The namespace to whose quotas a request counts. */
export const namespaceOfCaller = ({ caller }: Pick<Call, 'caller'>): string =>
  caller?.namespace ?? DEFAULT_NAMESPACE;

/** The response to a command that returns no resource. @param position of its last event */
export function success(
  message: string,
  details: object,
  position: Position | null = null,
): Pick<EndpointResponse, 'body' | 'position'> {
  return { body: { success: true, message, details }, position };
}

/** The header that names a resource's revision. */
export const etag = (revision: number | 'none') => ({ ETag: `"${revision}"` });
