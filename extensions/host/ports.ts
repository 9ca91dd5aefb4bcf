import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import type { AllowedPlugins } from './plugins.ts';
import type { PreconditionFailedError } from './routes/static-files.ts';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import type {
  Capability,
  CoreResponse,
  CoreRequest,
  EndpointDescription,
  ExtensionCaller,
  ExtensionError,
  ServiceFacts,
  ToolFunction,
  ToolView,
} from '../contract.ts';

/** The parts of the service that the host needs. */
export interface HostDependencies {
  readonly store: EventStore;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly settings: HostSettings;
  readonly service: ServiceFacts;
  readonly tools: ToolPort;
  readonly core: CorePort;
  /** null in a process that does not serve routes. */
  readonly http: HttpPort | null;
  readonly agents: AgentPort;
  /**
   * Calls a handler with a published event. Everything the handler does until it ends counts as caused by the event.
   */
  duringEvent<T>(event: RecordedEvent, call: () => Promise<T>): Promise<T>;
  /** Calls the code of an extension that is not built in. Nothing it does ends the process. */
  contain<T>(extensionId: string, call: () => T): T;
  /** Closes the connections and timers that an extension left open. */
  release(extensionId: string): void;
  /** @throws Error for endpoints that `/openapi.json` cannot describe, such as a reference to a missing schema */
  readonly checkEndpoints: (described: {
    readonly id: string;
    readonly isLimited: boolean;
    readonly endpoints: readonly EndpointDescription[];
  }) => void;
  /** Name of this process in leases. */
  readonly member: string;
  /** Time limit of a setup, in milliseconds. Default: 10 s. */
  readonly setupLimit?: number;
}

export interface HostSettings {
  /** `SVC_EXT_PATHS`. */
  readonly extensionPaths: readonly string[];
  /** `SVC_EXT_PLUGINS`. */
  readonly allowedPlugins: AllowedPlugins;
  /** `SVC_EXT_GRANTS`, by extension id. An extension that is not named gets what it requests. */
  readonly extensionGrants: Readonly<Record<string, readonly Capability[]>>;
  /** `SVC_REQUIRE_SCOPES`. */
  readonly requireScopes: boolean;
  /** `SVC_WEBUI_REQUIRE_AUTH`. */
  readonly webuiRequireAuth: boolean;
  readonly production: boolean;
  /** `SVC_EXTENSION_SECONDS`: time for a handler to send headers, and for a subscriber before the status lists it. */
  readonly extensionSeconds: number;
  /** `SVC_RATE_LIMIT`: events that an extension may publish in a window; 0: unlimited. */
  readonly rateLimit: number;
  readonly rateLimitWindowSeconds: number;
  /** `SVC_EXT_<ID>_<NAME>`, as in the environment. */
  readonly extensionSettings: Readonly<Record<string, string>>;
  /** Whether this process runs pipelines. */
  readonly runsTools: boolean;
}

/** The client request that an action serves, for the audit. */
export interface RequestOrigin {
  /** The client's address. */
  readonly source: string;
  /** The request's id. */
  readonly correlationId: string;
  /** The client's `X-Reason`. */
  readonly reason?: string | undefined;
  /** Set for a request with an `Idempotency-Key`. Ids derived from it make a repetition idempotent. */
  readonly commandId?: string | undefined;
}

/** A tool of the service. */
export interface ProvidedTool extends Omit<ToolView, 'call'> {
  /** @param options.origin of the request being answered; without it, the extension itself acts */
  call(
    args: unknown,
    options: {
      readonly actAs: string;
      /** The namespace of that agent. */
      readonly namespace: string;
      readonly signal?: AbortSignal;
      readonly origin?: RequestOrigin | undefined;
    },
  ): Promise<unknown>;
}

/** An extension that looks for tools. */
export interface ToolUser {
  /** Named in the log of a call outside a pipeline. */
  readonly extensionId: string;
  /** The namespace of the agent for whom it looks. null: no agent, so no tools of workers. */
  readonly namespace: string | null;
}

/** The tools of this process. */
export interface ToolPort {
  /** @throws Error if the name is taken or the schema is not a valid JSON schema */
  register(name: string, description: string, schema: object, func: ToolFunction): void;
  unregister(name: string): void;
  /** The tools of the process, and those that workers of the user's namespace offer. */
  list(user: ToolUser): readonly ProvidedTool[];
  get(name: string, user: ToolUser): ProvidedTool | undefined;
  /** Records a rejected call of a tool. */
  noteRefusal(name: string, refusal: ToolRefusal): void;
}

/** A rejected call of a tool. */
export interface ToolRefusal {
  /** Id of the rejected agent. */
  readonly actAs: string;
  /** The namespace of that agent. */
  readonly namespace: string;
  readonly origin: RequestOrigin;
  /** Error code of the response. */
  readonly code: string;
}

/** The service's own HTTP interface. */
export interface CorePort {
  /** @param request.token of the caller, or null; the extension's own token is already filled in */
  request(method: string, path: string, request: PortRequest): Promise<CoreResponse>;
}

export interface PortRequest extends CoreRequest {
  /**
   * Whether the numbers of the body were checked in the client's text, so one beyond 2^53 − 1 is a float. Default:
   * false, as an extension may have computed with an integer that lost digits.
   */
  readonly isChecked?: boolean;
}

/** The data from which an extension's agent is created. */
export interface AgentExtension {
  readonly id: string;
  readonly granted: readonly Capability[];
}

/** The agents of extensions that act on their own. */
export interface AgentPort {
  /** The id of `ext-<id>`. Creates the agent if it does not exist. */
  idOf(extension: AgentExtension): Promise<string>;
  /** The namespace of any agent. @throws RefusalError if it was removed */
  namespaceOf(agentId: string): Promise<string>;
  /** An access token for the agent, valid for minutes. */
  tokenOf(extension: AgentExtension): Promise<string>;
  /**
   * Checks that an agent may add an entry to a stream, by the quotas of its namespace.
   * @throws errors for 409 and 429
   */
  requireEntryRoom(namespace: string, data: unknown): Promise<void>;
  /** Publishes as the agent. @returns the event's id */
  publish(extension: AgentExtension, topic: string, payload: object): Promise<string>;
}

/** The rules of the HTTP interface, applied to the endpoints of extensions. */
export interface HttpPort {
  /** @throws errors for 401 and 403 */
  authenticate(
    request: IncomingMessage,
    scopes: readonly string[],
  ): Promise<ExtensionCaller> | ExtensionCaller;
  /** null without a valid token. */
  callerOf(request: IncomingMessage): Promise<ExtensionCaller | null>;
  /** The visitor of a protected page, by token or by browser sign-in. @throws errors for 401 and 429 */
  visitorOf(request: Request): Promise<ExtensionCaller>;
  /** @returns undefined without a body @throws errors for 400, 413 and 415 */
  readBody(request: IncomingMessage): Promise<unknown>;
  /** @param schema of the query parameters; undefined: none @throws an error for 400 */
  checkQuery(request: Request, schema: object | undefined): void;
  /**
   * Headers that mark an internal request as made for a client's request. `over` is called when the internal request
   * has ended.
   */
  innerFor(request: Request): {
    readonly headers: Readonly<Record<string, string>>;
    readonly over: () => void;
  };
  /** The origin of a request, for the audit. @throws an error for 400 */
  originOf(request: Request): RequestOrigin;
  /**
   * Runs a command once for the `Idempotency-Key` of its request.
   * @param run gets the id of the keyed command; null without a key
   * @throws errors for 400 and 409, and the error of the first run
   */
  once<T>(
    request: Request,
    agentId: string,
    run: (commandId: string | null) => Promise<T>,
  ): Promise<T>;
  /** Converts an error of the contract, or a failed file precondition, to an HTTP error. */
  errorOf(error: ExtensionError | PreconditionFailedError): Error;
  /** Converts an error that the service itself threw; null for any other. */
  knownError(error: unknown): Error | null;
  /** The response to an error of the extension: 500. */
  internalErrorOf(extensionId: string, error: unknown): Error;
  /** The response for a handler that timed out: 504. */
  timeoutErrorOf(extensionId: string, message: string, seconds: number): Error;
  /** Sets the route of a request for the metrics. */
  setRoute(response: Response, endpoint: string): void;
  /** Calls back when a request has ended, before it is counted. At most one callback a request. */
  whenEnded(response: Response, call: () => void): void;
  sendJson(response: Response, status: number, body: unknown): void;
  /** Headers of an HTML page. */
  readonly pageHeaders: Readonly<Record<string, string>>;
}
