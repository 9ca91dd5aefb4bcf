import type { Request, Router } from 'express';
import type { EndpointDescription } from './endpoint-description.ts';

export type { EndpointDescription };

/**
 * The contract between the service and its extensions: all that an extension knows of the service. docs/how-to/extensions.md
 * explains it; what follows here is what each part takes, gives and throws.
 * An extension is a folder with `extension.json` and an ES module that exports {@link ExtensionModule}.
 */
export interface ExtensionModule {
  /** Called once, before the extension's first request. Has 10 s; what it throws makes the extension `failed`. */
  setup(context: ExtensionContext): Promise<void> | void;
  /** Called when the process stops, and has 2 s. */
  shutdown?(): Promise<void> | void;
  /** What clients can ask of it: described in `/openapi.json` for as long as it is loaded. */
  readonly endpoints?: readonly EndpointDescription[];
}

/** What an extension may ask for in its manifest. */
export const capabilities = [
  'ROUTES',
  'TOOLS',
  'EVENTS_PUB',
  'EVENTS_SUB',
  'BACKGROUND_TASKS',
  'STATIC',
] as const;
export type Capability = (typeof capabilities)[number];

/**
 * What an extension works with. Each part that is marked with a capability throws {@link ExtensionError} `forbidden`
 * where the extension was not granted it.
 */
export interface ExtensionContext {
  /** As its manifest says. */
  readonly info: ExtensionInfo;
  /** What was granted: what the manifest asks for, unless `SVC_EXT_GRANTS` says less. */
  readonly capabilities: readonly Capability[];
  /** Structured lines of the service's own log, each with the extension's id. */
  readonly log: ExtensionLog;
  /** `SVC_EXT_<ID>_<NAME>` of the environment, under `<NAME>` in lower case. */
  readonly config: Readonly<Record<string, string>>;
  /** The service itself. */
  readonly service: ServiceFacts;
  /** A client of the service's own HTTP interface. */
  readonly core: CoreClient;
  /**
   * ROUTES: an Express router, mounted at `/ext/<id>`. Before a handler is called, the caller's token has been
   * checked, and a JSON body stands in `request.body` (undefined where there is none). What a handler throws is
   * answered with the error body of all endpoints: an {@link ExtensionError} as it says, anything else as 500. One that
   * has sent no headers within `SVC_EXTENSION_SECONDS` (30 s) is answered for with 504; what it says later goes nowhere.
   */
  readonly routes: Router;
  /**
   * ROUTES: answers WebSockets at `/ext/<id>/ws/<path>`; the token is checked before.
   * @param path without a slash at either end; a later handler of the same path takes the earlier one's place
   */
  readonly websocket: (path: string, handler: SocketHandler) => void;
  /** ROUTES: who called; null on the few paths that need no token, where none came. */
  readonly callerOf: (request: Request) => ExtensionCaller | null;
  /**
   * ROUTES: aborted once nobody waits for the answer to a request any more: its time is over, its client has gone, or
   * the extension is ended. Not aborted by an answer that was given.
   * @throws ExtensionError `bad_request` for what is no request that was led to the extension
   */
  readonly signalOf: (request: Request) => AbortSignal;
  /**
   * ROUTES: carries a command out once for the `Idempotency-Key` of its request, as the service's own are; where there
   * is none, each time. What it asks of `core`, `streams` and tools `onBehalfOf` the request is the same in a repetition.
   * @returns what `carryOut` resolved to, or did the first time: JSON
   * @throws ExtensionError `bad_request` for a malformed key; what the service answers with 409
   */
  readonly once: <T>(request: Request, carryOut: () => Promise<T>) => Promise<T>;
  /** TOOLS: what steps of pipelines can use. */
  readonly toolRegistry: ToolAccess;
  /** EVENTS_PUB, EVENTS_SUB: the service's topics. */
  readonly events: EventAccess;
  /** EVENTS_PUB, EVENTS_SUB: streams of the extension's own, which trigger nothing. */
  readonly streams: StreamAccess;
  /** BACKGROUND_TASKS: work that goes on by itself, in one process at a time. */
  readonly background: BackgroundAccess;
}

export interface ExtensionInfo {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
}

/** One line each, with structured fields. Never tokens or secrets. */
export interface ExtensionLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export interface ServiceFacts {
  /** The service's version. */
  readonly version: string;
  readonly production: boolean;
  /** All metrics of this process as Prometheus text (version 0.0.4). */
  metricsText(): Promise<string>;
}

/** Calls the service's own HTTP interface, with all of its rules. */
export interface CoreClient {
  /**
   * @param method such as `GET`
   * @param path such as `/tasks/{id}/run_now`, from the root; encoded
   * @returns the answer, whatever its status: 4xx and 5xx are answers too
   * @throws ExtensionError `unavailable` where the service can't be reached, takes over 90 s, or the process serves no
   *   interface; `bad_request` for a live stream, which has no end, and for a body that JSON cannot hold; `payload_too_large` for an answer over 64 MiB
   */
  request(method: string, path: string, options?: CoreRequest): Promise<CoreAnswer>;
}

export interface CoreRequest {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /**
   * On whose behalf: an access token, with or without `Bearer ` before it, so that a caller's
   * `request.headers.authorization` can be handed on as it is. null: no token. Left out: that of `onBehalfOf`;
   * without it the extension's own agent, `ext-<id>`, with the scopes tasks:read, tasks:write, runs:read, and events:publish
   * and events:read where it was granted EVENTS_PUB and EVENTS_SUB.
   */
  readonly token?: string | null | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The request that is being answered, as the handler got it. The call then stands in the audit with that request's
   * address, id and reason (`X-Reason`, unless `headers` has another), acts with its token (unless `token` says otherwise), and the first one for it is not counted
   * against the limits, as it was counted itself.
   */
  readonly onBehalfOf?: Request;
  /** Gives up waiting. */
  readonly signal?: AbortSignal;
}

export interface CoreAnswer {
  readonly status: number;
  /** In lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON; the text itself where it is something else; null where there is none. */
  readonly body: unknown;
}

/** The agent that a token stands for, as it is now. */
export interface ExtensionCaller {
  readonly agentId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Has the scope `admin`, which implies all others. */
  readonly admin: boolean;
}

/** Called for each WebSocket that is opened. Messages are JSON both ways. */
export type SocketHandler = (socket: ExtensionSocket) => Promise<void> | void;

export interface ExtensionSocket {
  readonly caller: ExtensionCaller | null;
  readonly query: Readonly<Record<string, string>>;
  /** Aborted once the connection is gone. */
  readonly signal: AbortSignal;
  /** @returns false (and drops it) where the client is gone, or has too much unread. @throws TypeError for no JSON */
  send(message: unknown): boolean;
  /** Called for each message, in order, for at most 32 at a time; one that is not JSON ends the connection (1007). */
  onMessage(handler: (message: unknown) => Promise<void> | void): void;
  /** @param code as in RFC 6455; 1000: done */
  close(code?: number, reason?: string): void;
}

export interface ToolAccess {
  /**
   * Adds the tool `<id>.<name>`: in pipelines of every worker process, and wherever tools are listed.
   * @param func gives (or resolves to) the step's result, as JSON: what is none fails the step for good, and undefined
   *   is null. What it throws fails the step, which is tried again unless the error has `retryable: false`
   * @param schema JSON schema of the arguments, an object; its `description` is the tool's
   * @throws Error when the name is taken or malformed, or the schema is no valid JSON schema
   */
  registerTool(name: string, func: ToolFunction, schema: object): void;
  /** All tools of the service, by name: built-in ones, and those of every extension. */
  listTools(): readonly ToolView[];
  /** By its full name. */
  getTool(name: string): ToolView | undefined;
  /**
   * Notes that a client may not call a tool: the audit shows that beside the calls that were made.
   * @param name of the tool
   * @param options.actAs id of the agent that was refused, as for a call
   * @param options.code of the error that it is answered with
   * @throws ExtensionError `forbidden` for an agent whose request is not being served
   */
  noteRefusal(
    name: string,
    options: { readonly actAs: string; readonly onBehalfOf: Request; readonly code: string },
  ): Promise<void>;
}

/** @param args rendered and checked against the schema */
export type ToolFunction = (args: unknown, call: ToolCallView) => unknown;

/** What a tool is told about one call. */
export interface ToolCallView {
  /** Aborted when the call has run out of time, or nobody wants its result any more. */
  readonly signal: AbortSignal;
  /** The same whenever this call is tried again. */
  readonly idempotencyKey: string;
  /** Id of the agent for which it acts. */
  readonly actAs: string;
  /**
   * Adds a line to the log of the run, or of the extension that calls. Never throws: another level counts as `info`, a
   * message is made a text, and data is copied at once; in the place of what is no JSON stands why it is none.
   */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, data?: unknown): void;
}

export interface ToolView {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments. */
  readonly schema: object;
  /** @throws ExtensionError `bad_request` for arguments that do not fit the schema; a call looks at them, too */
  check(args: unknown): void;
  /**
   * Calls the tool outside of a pipeline. A result over 256 KiB is cut, as that of a step is.
   * @param options.actAs id of the agent for which it acts: one whose request, WebSocket or step of a run is being
   *   served, or the extension's own
   * @param options.onBehalfOf the request that is being answered, as the handler got it: what the tool does to the
   *   service then stands in the audit with that request's address, id and reason
   * @throws ExtensionError `bad_request` for arguments that do not fit the schema; `forbidden` for any other agent; and
   *   whatever the tool throws
   */
  call(
    args: unknown,
    options: {
      readonly actAs: string;
      readonly signal?: AbortSignal;
      readonly onBehalfOf?: Request;
    },
  ): Promise<unknown>;
}

export interface EventAccess {
  /**
   * EVENTS_PUB: publishes an event as the agent `ext-<id>`; it triggers tasks as any other.
   * @param topic 1 to 200 characters of `A–Z a–z 0–9 _ . : / -`
   * @param data an object, at most 256 KiB as JSON
   * @returns the event's id
   * @throws ExtensionError `bad_request` (also for NaN, an infinity, or an integer beyond 2^53 - 1),
   *   `payload_too_large`; `rate_limit_exceeded` over the limit that an agent's
   *   requests have; what the log throws while it is away
   */
  publish(topic: string, data: object): Promise<string>;
  /**
   * EVENTS_SUB: calls a handler for each event of the topics that match, one after the other, in one process at a
   * time. The first time it begins with what is published from now on; after a restart it goes on after the last
   * event that was handled. An event may come again after a crash; a handler that throws gets its event again, five
   * times in all, and then the next one. One that takes longer than `SVC_EXTENSION_SECONDS` is waited for, and named in
   * `GET /ext/status`.
   * @param pattern split by dots: `*` one segment, `#` any number of segments. One handler a pattern
   * @throws ExtensionError `bad_request` for a pattern that is none; Error when it is subscribed already
   */
  subscribe(pattern: string, handler: EventHandler): Promise<void>;
  /**
   * EVENTS_SUB: resolves once no handler of it runs, or one that goes on was told to end two seconds ago. The place is
   * forgotten. Nothing where there is none.
   */
  unsubscribe(pattern: string): Promise<void>;
}

/** @param signal aborted when this process is to stop handling */
export type EventHandler = (event: TopicEventView, signal: AbortSignal) => Promise<void> | void;

export interface TopicEventView {
  readonly id: string;
  /** `<millis>-<seq>`, where `seq` counts within the topic. */
  readonly stream_id: string;
  readonly topic: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly source_agent_id: string;
  /** ISO 8601. */
  readonly published_at: string;
}

export interface StreamAccess {
  /**
   * EVENTS_PUB: appends an entry.
   * @param stream 1 to 200 characters of `A–Z a–z 0–9 _ . : / -`
   * @param data any JSON, at most 256 KiB
   * @param source the agent whose entry it is: one whose request, WebSocket or step of a run is being served, or the
   *   extension's own
   * @param options.onBehalfOf the request that is being answered, as the handler got it: the entry then stands in the
   *   log, and in the audit, with that request's address, id and reason
   * @throws ExtensionError `bad_request`, as {@link EventAccess.publish}; `payload_too_large`; `forbidden` for any other agent
   */
  append(
    stream: string,
    data: unknown,
    source: string,
    options?: { readonly onBehalfOf?: Request },
  ): Promise<StreamEntry>;
  /**
   * EVENTS_SUB: entries as they come, without gaps, until the signal is aborted. The place where it begins is fixed
   * when this resolves.
   * @param options.after an entry's id: begins after it. `start`: at the first. Left out: at the next to come
   * @throws ExtensionError `bad_request` for an `after` that is no entry's id
   */
  follow(
    stream: string,
    options: { readonly after?: string; readonly signal: AbortSignal },
  ): Promise<AsyncIterable<StreamEntry>>;
}

export interface StreamEntry {
  /** `<millis>-<seq>`, where `seq` counts within the stream, from 0. */
  readonly id: string;
  readonly stream: string;
  readonly data: unknown;
  /** ISO 8601. */
  readonly at: string;
}

export interface BackgroundAccess {
  /**
   * Starts work in one process at a time: where another one has it, this one waits its turn. Begun again, after a
   * pause that grows to a minute, when it throws; done when it returns.
   * @param work gets a signal that is aborted when the work is to stop
   * @throws Error when a task of this name is there already; one that was stopped and goes on is waited for
   */
  startTask(name: string, work: (signal: AbortSignal) => Promise<void> | void): Promise<void>;
  /** Aborts it, and resolves once it has ended, or after two seconds. Nothing where there is none. */
  stopTask(name: string): Promise<void>;
  listTasks(): readonly BackgroundTaskView[];
}

export interface BackgroundTaskView {
  readonly name: string;
  /** `waiting`: another process has it, or it is about to be begun again. */
  readonly state: 'waiting' | 'running' | 'done';
  readonly restarts: number;
  /** What it threw last; null where nothing. */
  readonly error: string | null;
}

/** What an extension may answer a request with, beside an answer of its own. */
export const extensionErrorCodes = [
  'bad_request',
  'unauthorized',
  'forbidden',
  'not_found',
  'conflict',
  'precondition_failed',
  'payload_too_large',
  'unsupported_media_type',
  'rate_limit_exceeded',
  'unavailable',
] as const;
export type ExtensionErrorCode = (typeof extensionErrorCodes)[number];

/**
 * An answer that is an error, in the form that all endpoints have: thrown by a handler, it becomes
 * `{"error": code, "message", "details", "request_id"}` with the code's status.
 * Its `details`: `bad_request` `{field, issue, issues: [{field, issue}]}`; `forbidden` `{required_scopes,
 * granted_scopes}` or, for a capability, `{required_capability, granted_capabilities}`; `not_found`
 * `{resource, id}`.
 */
export class ExtensionError extends Error {
  readonly code: ExtensionErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ExtensionErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.name = 'ExtensionError';
    this.code = code;
    this.details = details;
  }
}

/** Input at fault at a dotted path. */
export function badInput(field: string, issue: string): ExtensionError {
  const details = { field, issue, issues: [{ field, issue }] };
  return new ExtensionError('bad_request', `${field}: ${issue}`, details);
}
