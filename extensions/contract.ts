import type { Request, Router } from 'express';
import type { EndpointDescription } from './endpoint-description.ts';

export type { EndpointDescription };

/**
 * The interface between the service and its extensions. docs/how-to/extensions.md explains it; the comments here
 * document inputs, results and errors.
 *
 * An extension is a folder with `extension.json` and an ES module that exports {@link ExtensionModule}.
 */
export interface ExtensionModule {
  /** Called once, before the first request. If it throws or takes over 10 s, the extension is `failed`. */
  setup(context: ExtensionContext): Promise<void> | void;
  /** Called when the process stops. Has 2 s. */
  shutdown?(): Promise<void> | void;
  /** Describes the routes in `/openapi.json` while the extension is loaded. */
  readonly endpoints?: readonly EndpointDescription[];
}

/** Capabilities that a manifest may request. */
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
 * The service as an extension sees it. Members marked with a capability throw {@link ExtensionError} `forbidden`
 * unless it was granted.
 */
export interface ExtensionContext {
  /** From the manifest. */
  readonly info: ExtensionInfo;
  /** Granted capabilities: those that the manifest requests, limited by `SVC_EXT_GRANTS`. */
  readonly capabilities: readonly Capability[];
  /** Writes structured lines to the service's log, each with the extension's id. */
  readonly log: ExtensionLog;
  /** Environment variables `SVC_EXT_<ID>_<NAME>`, keyed by `<NAME>` in lower case. */
  readonly config: Readonly<Record<string, string>>;
  /** Facts about the service. */
  readonly service: ServiceFacts;
  /** Calls the service's own HTTP interface. */
  readonly core: CoreClient;
  /**
   * ROUTES: an Express router, mounted at `/ext/<id>`. Before a handler runs, the token has been checked and a JSON
   * body parsed into `request.body` (undefined without a body). An {@link ExtensionError} that a handler throws
   * becomes its error response, any other error a 500. A handler that sends no headers within `SVC_EXTENSION_SECONDS`
   * (30 s) gets a 504, and its later response is discarded.
   */
  readonly routes: Router;
  /**
   * ROUTES: accepts WebSockets at `/ext/<id>/ws/<path>`, after checking the token.
   * @param path without leading or trailing slash; a later handler replaces an earlier one of the same path
   */
  readonly websocket: (path: string, handler: SocketHandler) => void;
  /** ROUTES: the caller; null for a request without a token on a path that needs none. */
  readonly callerOf: (request: Request) => ExtensionCaller | null;
  /**
   * ROUTES: a signal that is aborted when nobody waits for the response: the handler timed out, the client
   * disconnected, the token became invalid, or the extension is being ended. A complete response does not abort it.
   * @throws ExtensionError `bad_request` for a request that this extension did not receive
   */
  readonly signalOf: (request: Request) => AbortSignal;
  /**
   * ROUTES: runs a command once for the `Idempotency-Key` of its request; without a key, every time. Calls of `core`,
   * `streams` and tools with `onBehalfOf` are repeated with the same keys.
   * @param carryOut returns the command's result as JSON
   * @returns the result of `carryOut`, or that of its first run
   * @throws ExtensionError `bad_request` for a malformed key; the service's error for 409
   */
  readonly once: <T>(request: Request, carryOut: () => Promise<T>) => Promise<T>;
  /** TOOLS: the tools for steps of pipelines. */
  readonly toolRegistry: ToolAccess;
  /** EVENTS_PUB, EVENTS_SUB: the service's topics. */
  readonly events: EventAccess;
  /** EVENTS_PUB, EVENTS_SUB: the extension's own streams. Their entries trigger nothing. */
  readonly streams: StreamAccess;
  /** BACKGROUND_TASKS: work that runs in one process at a time. */
  readonly background: BackgroundAccess;
}

export interface ExtensionInfo {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
}

/** Each call writes one line with structured fields. Never log tokens or secrets. */
export interface ExtensionLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export interface ServiceFacts {
  readonly version: string;
  readonly production: boolean;
  /** All metrics of this process in Prometheus text format 0.0.4. */
  metricsText(): Promise<string>;
}

/** A client of the service's own HTTP interface. All rules of the interface apply. */
export interface CoreClient {
  /**
   * @param method such as `GET`
   * @param path URL-encoded, from the root, such as `/tasks/{id}/run_now`
   * @returns the response, whatever its status
   * @throws ExtensionError `unavailable` if the service cannot be reached, takes over 90 s, or this process serves no
   *   interface; `bad_request` for a live stream, which has no end, or a body that JSON cannot represent;
   *   `payload_too_large` for a response over 64 MiB
   */
  request(method: string, path: string, options?: CoreRequest): Promise<CoreResponse>;
}

export interface CoreRequest {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Properties that are undefined are omitted. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /**
   * Access token, with or without `Bearer `, so `request.headers.authorization` can be passed on. null: no token.
   * Default: that of `onBehalfOf`; without it, the extension's own agent `ext-<id>`. That agent has the scopes
   * tasks:read, tasks:write and runs:read, plus events:publish with EVENTS_PUB and events:read with EVENTS_SUB.
   */
  readonly token?: string | null | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The request being answered, as the handler received it. The audit then shows its address, id and reason
   * (`X-Reason`, unless `headers` sets another). Its token is used unless `token` is given. The first such call does
   * not count against the rate limit, as the request itself did.
   */
  readonly onBehalfOf?: Request;
  /** Stops waiting for the response. */
  readonly signal?: AbortSignal;
}

export interface CoreResponse {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON; a string for any other format; null without a body. */
  readonly body: unknown;
}

/** The agent of a token, with its current scopes. */
export interface ExtensionCaller {
  readonly agentId: string;
  readonly namespace: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Whether it has the scope `admin`, which implies all others. */
  readonly admin: boolean;
}

/** Called for each new WebSocket. Messages are JSON in both directions. */
export type SocketHandler = (socket: ExtensionSocket) => Promise<void> | void;

export interface ExtensionSocket {
  readonly caller: ExtensionCaller | null;
  readonly query: Readonly<Record<string, string>>;
  /** Aborted when the connection has ended. */
  readonly signal: AbortSignal;
  /**
   * Sends a message as JSON.
   * @returns false if it was dropped, because the client has disconnected or has too much unread data
   * @throws TypeError for a message that is not JSON
   */
  send(message: unknown): boolean;
  /**
   * Adds a handler for messages. At most 32 run at a time, started in order. A message that is not JSON ends the
   * connection (1007).
   */
  onMessage(handler: (message: unknown) => Promise<void> | void): void;
  /** Closes the connection. @param code of RFC 6455; 1000 (done) by default */
  close(code?: number, reason?: string): void;
}

export interface ToolAccess {
  /**
   * Registers the tool `<id>.<name>` for pipelines in every worker process and for lists of tools.
   * @param func returns the step's result, or a promise of it, as JSON. undefined becomes null; any other value that
   *   is not JSON fails the step permanently. If it throws, the step fails and is retried, unless the error has
   *   `retryable: false`
   * @param schema JSON schema of the arguments object; its `description` describes the tool
   * @throws Error if the name is taken or malformed, or the schema is invalid
   */
  registerTool(name: string, func: ToolFunction, schema: object): void;
  /** All tools by name: the service's, those of extensions, and those of workers in a served agent's namespace. */
  listTools(options?: { readonly actAs?: string }): readonly ToolView[];
  /** @param name the full name @param options as of {@link listTools} */
  getTool(name: string, options?: { readonly actAs?: string }): ToolView | undefined;
  /**
   * Records a rejected call of a tool in the audit, beside the calls that were made.
   * @param name of the tool
   * @param options.actAs id of the rejected agent, as for a call
   * @param options.code error code of the response
   * @throws ExtensionError `forbidden` for an agent that the extension is not serving
   */
  noteRefusal(
    name: string,
    options: { readonly actAs: string; readonly onBehalfOf: Request; readonly code: string },
  ): Promise<void>;
}

/** @param args rendered and validated against the schema */
export type ToolFunction = (args: unknown, call: ToolCallView) => unknown;

/** Details of one call of a tool. */
export interface ToolCallView {
  /** Aborted when the call has timed out, or nobody waits for its result. */
  readonly signal: AbortSignal;
  /** The same for every retry of this call. */
  readonly idempotencyKey: string;
  /** Id of the agent that the tool acts for. */
  readonly actAs: string;
  readonly namespace: string;
  /**
   * Writes a line to the log of the run or of the calling extension. Never throws: an unknown level becomes `info`,
   * and the message is converted to a string. Data is copied at once; if it is not JSON, the reason is logged.
   */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, data?: unknown): void;
}

export interface ToolView {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments. */
  readonly schema: object;
  /** @throws ExtensionError `bad_request` for arguments that do not match the schema; `call` checks them too */
  check(args: unknown): void;
  /**
   * Calls the tool outside a pipeline. A result over 256 KiB is cut, like that of a step.
   * @param options.actAs id of the agent to act for: one whose request, WebSocket or step the extension is serving,
   *   or its own
   * @param options.onBehalfOf the request being answered, for the audit
   * @throws ExtensionError `bad_request` for arguments that do not match the schema, `forbidden` for any other agent;
   *   the errors of the tool itself
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
   * EVENTS_PUB: publishes an event as the agent `ext-<id>`, in `default`. It triggers tasks like any other.
   * @param topic 1 to 200 characters of `A–Z a–z 0–9 _ . : / -`
   * @param data an object, at most 256 KiB as JSON
   * @returns the event's id
   * @throws ExtensionError `bad_request` (also for NaN, an infinity, or an integer beyond 2^53 − 1),
   *   `payload_too_large`, `rate_limit_exceeded` over the rate limit of an agent, `conflict` at the limit of a chain of
   *   runs; the event store's error while the event log is unavailable
   */
  publish(topic: string, data: object): Promise<string>;
  /**
   * EVENTS_SUB: calls a handler for each event of the matching topics of `default`, one at a time and in order, in one
   * process at a time. The first subscription starts with the next event; after a restart, it continues after the last
   * handled event. After a crash, an event may arrive again. If the handler throws, the event is delivered up to five
   * times in all. A handler that runs longer than `SVC_EXTENSION_SECONDS` is not interrupted; the status lists it.
   * @param pattern segments are separated by dots; `*` matches one segment, `#` any number. One handler per pattern
   * @throws ExtensionError `bad_request` for an invalid pattern; Error if already subscribed
   */
  subscribe(pattern: string, handler: EventHandler): Promise<void>;
  /**
   * EVENTS_SUB: stops calling the handler and deletes the saved position. Resolves when the handler has ended, or
   * after two seconds. Does nothing without a subscription.
   */
  unsubscribe(pattern: string): Promise<void>;
}

/** @param signal aborted when the handler should stop */
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
   * @param source the agent of the entry: the extension's own, or one whose request, WebSocket or step it is serving.
   *   The stream is in that agent's namespace
   * @param options.onBehalfOf the request being answered: the log and the audit show its address, id and reason
   * @throws ExtensionError `bad_request` as {@link EventAccess.publish}, `payload_too_large`, `forbidden` for any other
   *   agent
   */
  append(
    stream: string,
    data: unknown,
    source: string,
    options?: { readonly onBehalfOf?: Request },
  ): Promise<StreamEntry>;
  /**
   * EVENTS_SUB: follows a stream without gaps until the signal is aborted. The start is fixed when the promise
   * resolves.
   * @param options.after id of an entry to start after, or `start` for the first entry. Default: the next new entry
   * @param options.actAs selects the stream's namespace, as `source` of `append`. Default: the extension's own
   * @throws ExtensionError `bad_request` if `after` is not the id of an entry, `forbidden` for any other agent
   */
  follow(
    stream: string,
    options: { readonly after?: string; readonly actAs?: string; readonly signal: AbortSignal },
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
   * Starts work that runs in one process at a time; other processes wait. If it throws, it restarts after a pause that
   * grows up to a minute. The work is done when it returns.
   * @param work gets a signal that is aborted when it should stop
   * @throws Error if a task of this name is waiting or running. A stopped task that still runs delays the new one
   */
  startTask(name: string, work: (signal: AbortSignal) => Promise<void> | void): Promise<void>;
  /** Stops a task. Resolves when it has ended, or after two seconds. Does nothing for an unknown name. */
  stopTask(name: string): Promise<void>;
  listTasks(): readonly BackgroundTaskView[];
}

export interface BackgroundTaskView {
  readonly name: string;
  /** `waiting`: another process runs it, or it is about to restart. */
  readonly state: 'waiting' | 'running' | 'done';
  readonly restarts: number;
  /** The last error, or null. */
  readonly error: string | null;
}

/** Error codes of responses of an extension. */
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
 * An error response in the format of all endpoints. Thrown by a handler, it becomes `{"error": code, "message",
 * "details", "request_id"}` with the status of the code.
 *
 * `details` of `bad_request`: `{field, issue, issues: [{field, issue}]}`. Of `forbidden`: `{required_scopes,
 * granted_scopes}`, or `{required_capability, granted_capabilities}`. Of `not_found`: `{resource, id}`.
 */
export class ExtensionError extends Error {
  readonly code: ExtensionErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ExtensionErrorCode, message: string, details: ExtensionError['details'] = {}) {
    super(message);
    this.name = 'ExtensionError';
    this.code = code;
    this.details = details;
  }
}

/**
 * Creates a `bad_request` for invalid input.
 * @param field dotted path of the invalid value
 */
export function badInput(field: string, issue: string): ExtensionError {
  const details = { field, issue, issues: [{ field, issue }] };
  return new ExtensionError('bad_request', `${field}: ${issue}`, details);
}
