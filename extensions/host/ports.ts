import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import type { PreconditionFailed } from './routes/static-files.ts';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import type {
  Capability,
  CoreAnswer,
  CoreRequest,
  EndpointDescription,
  ExtensionCaller,
  ExtensionError,
  ServiceFacts,
  ToolFunction,
  ToolView,
} from '../contract.ts';

/** All that the host needs of the rest of the service. */
export interface HostDependencies {
  readonly store: EventStore;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly settings: HostSettings;
  readonly service: ServiceFacts;
  readonly tools: ToolPort;
  readonly core: CorePort;
  readonly agents: AgentPort;
  /** Calls into the code of an extension that is not of this service, so that nothing it does ends the process. */
  contain<T>(extensionId: string, call: () => T): T;
  /** Takes away the connections and timers that an extension has left. */
  release(extensionId: string): void;
  /** @throws Error for endpoints that `/openapi.json` can't have, as where they refer to a schema that is not there */
  readonly checkEndpoints: (described: {
    readonly id: string;
    readonly isLimited: boolean;
    readonly endpoints: readonly EndpointDescription[];
  }) => void;
  /** This process, as its leases name it. */
  readonly member: string;
  /** How long a setup may take, in milliseconds; 10 s. */
  readonly setupLimit?: number;
}

export interface HostSettings {
  /** `SVC_EXT_PATHS`. */
  readonly extensionPaths: readonly string[];
  /** `SVC_EXT_GRANTS`: by extension id; one that is not named is granted what it asks for. */
  readonly extensionGrants: Readonly<Record<string, readonly Capability[]>>;
  /** `SVC_REQUIRE_SCOPES`. */
  readonly requireScopes: boolean;
  /** `SVC_WEBUI_REQUIRE_AUTH`. */
  readonly webuiRequireAuth: boolean;
  readonly production: boolean;
  /** `SVC_EXTENSION_SECONDS`: how long a handler may take to begin its answer, and a subscriber before it is named. */
  readonly extensionSeconds: number;
  /** `SVC_RATE_LIMIT`: what an extension may publish in a window; 0: without end. */
  readonly rateLimit: number;
  readonly rateLimitWindowSeconds: number;
  /** `SVC_EXT_<ID>_<NAME>`, as they stand in the environment. */
  readonly extensionSettings: Readonly<Record<string, string>>;
  /** Whether routes are served here, and whether pipelines are carried out here. */
  readonly servesRoutes: boolean;
  readonly runsTools: boolean;
}

/** Where something comes from that is done for a client's request: what the audit shows of it. */
export interface RequestOrigin {
  /** The client's address. */
  readonly source: string;
  /** The request's id. */
  readonly correlationId: string;
  /** In the client's words. */
  readonly reason?: string | undefined;
  /** Of a request with an `Idempotency-Key`: what is done has its ids from it, so that a repetition does the same. */
  readonly commandId?: string | undefined;
}

/** A tool as the service lends it. */
export interface LentTool extends Omit<ToolView, 'call'> {
  /** @param options.origin of the request that is being answered; without one it is the extension that acts */
  call(
    args: unknown,
    options: {
      readonly actAs: string;
      readonly signal?: AbortSignal;
      readonly origin?: RequestOrigin | undefined;
    },
  ): Promise<unknown>;
}

/** The tools of this process. */
export interface ToolPort {
  /** @throws Error when the name is taken, or the schema is no valid JSON schema */
  register(name: string, description: string, schema: object, func: ToolFunction): void;
  unregister(name: string): void;
  /** `caller` names who calls outside of a pipeline, for what the tool writes into its log. */
  list(caller: string): readonly LentTool[];
  get(name: string, caller: string): LentTool | undefined;
  /** Records that a client may not call a tool. */
  noteRefusal(name: string, refusal: ToolRefusal): void;
}

/** A call of a tool that was not allowed. */
export interface ToolRefusal {
  /** Who would have called it. */
  readonly actAs: string;
  readonly origin: RequestOrigin;
  /** Of the error. */
  readonly code: string;
}

/** The service's own interface. */
export interface CorePort {
  /** @param request.token of the request, or none; the extension's own has been put in */
  request(method: string, path: string, request: PortRequest): Promise<CoreAnswer>;
}

/** A request to the service's own interface, as the host hands it on. */
export interface PortRequest extends CoreRequest {
  /**
   * Whether the numbers of the body were checked as a client wrote them: then one beyond 2^53 − 1 is a float. Default:
   * false, as an extension may have worked with an integer that had lost its last digits.
   */
  readonly isChecked?: boolean;
}

/** An extension as its agent is made for it. */
export interface Grantee {
  readonly id: string;
  readonly granted: readonly Capability[];
}

/** The agents as which extensions act by themselves. */
export interface AgentPort {
  /** The id of `ext-<id>`; makes the agent where it is not there. */
  idOf(extension: Grantee): Promise<string>;
  /** An access token for it that is good for some minutes. */
  tokenOf(extension: Grantee): Promise<string>;
  /** Publishes as it. @returns the event's id */
  publish(extension: Grantee, topic: string, payload: object): Promise<string>;
}

/** What the HTTP interface lends to extensions, so that their endpoints keep its rules. */
export interface HttpPort {
  /** @throws what the interface answers with 401 or 403 */
  authenticate(
    request: IncomingMessage,
    scopes: readonly string[],
  ): Promise<ExtensionCaller> | ExtensionCaller;
  /** null where no token came with the request that counts. */
  callerOf(request: IncomingMessage): Promise<ExtensionCaller | null>;
  /** Who looks at a page that is closed: by a token, or by what a browser asks for. @throws 401, 429 */
  visitorOf(request: Request): Promise<ExtensionCaller>;
  /** @throws what the interface answers with 400, 413 or 415; undefined where there is no body */
  readBody(request: IncomingMessage): Promise<unknown>;
  /** @param schema of the query parameters; undefined: there are none @throws what the interface answers with 400 */
  checkQuery(request: Request, schema: object | undefined): void;
  /**
   * What a request of the service to itself carries that is made to answer another one, so that it is known as the
   * client's. `over` is called once it is answered, or has failed.
   */
  innerFor(request: Request): {
    readonly headers: Readonly<Record<string, string>>;
    readonly over: () => void;
  };
  /** What the audit shows of what is done for a request. @throws what the interface answers with 400 */
  originOf(request: Request): RequestOrigin;
  /**
   * Carries a command out once for the `Idempotency-Key` of its request.
   * @param carryOut gets the id of the command that the key stands for; null without one
   * @throws what the interface answers with 400 or 409, or has answered the first time
   */
  once<T>(
    request: Request,
    agentId: string,
    carryOut: (commandId: string | null) => Promise<T>,
  ): Promise<T>;
  /** As the interface answers an error of the contract, and of a file that is not as it was asked for. */
  errorOf(error: ExtensionError | PreconditionFailed): Error;
  /** What an error that a handler threw is answered with; null for a fault of the extension itself. */
  knownError(error: unknown): Error | null;
  /** The answer to a fault of the extension itself. */
  faultOf(extensionId: string, error: unknown): Error;
  /** The answer in the place of an extension that has given none in its time. */
  lateOf(extensionId: string, message: string, seconds: number): Error;
  /** Names the route of a request for the metrics. */
  takenBy(response: Response, endpoint: string): void;
  /** Calls back once a request is over, before it is counted; at once where it is. At most one a request. */
  whenEnded(response: Response, call: () => void): void;
  sendJson(response: Response, status: number, body: unknown): void;
  /** Headers of an HTML page. */
  readonly pageHeaders: Readonly<Record<string, string>>;
}
