import type { ArtifactKeeping } from '../domain/artifacts/keep-result.ts';
import type { KnownTools } from '../domain/pipeline/check-payload.ts';
import type { Clock } from '../domain/clock.ts';
import type { RefusalError } from '../domain/errors.ts';
import type { EventStore, Position } from '../domain/event-store.ts';
import type { CommandContext } from '../domain/handle.ts';
import type { AgentState } from '../domain/agents/agent.ts';
import type { ApiKeyState } from '../domain/agents/api-key.ts';
import type {
  AgentEvent,
  ApiKeyEvent,
  SessionEvent,
  TaskEvent,
} from '../domain/events/catalogue.ts';
import type { SessionState } from '../domain/agents/session.ts';
import type { Wait } from '../domain/runs/run-waits.ts';
import type { SecretAccess } from '../domain/secrets/secret-access.ts';
import type { SecretCipher } from '../domain/secrets/secret-cipher.ts';
import type { SecretEvent, SecretState } from '../domain/secrets/secret.ts';
import type { TaskState } from '../domain/tasks/task.ts';
import type { CausedKind } from '../domain/vocabulary.ts';
import type { RegisteredWorker } from '../domain/workers/worker.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { LiveQuotas } from '../projections/reading/live-quotas.ts';
import type { LiveStreams } from '../projections/reading/live-streams.ts';
import type { Projection, ReadModel } from '../projections/read-model.ts';
import type { TopicIndex } from '../projections/reading/topic-index.ts';
import type { WorkerDirectory } from '../projections/reading/worker-directory.ts';
import type { Coordination, HeldJob, JobLease } from '../scheduler/coordination.ts';
import type { ExportPlaces } from './exporting/export-places.ts';
import type { AuditTail } from './live/audit-tail.ts';
import type { LiveRuns } from './live/live-runs.ts';
import type { ApiKeyUses } from './access/api-key-uses.ts';
import type { Refusals } from './access/refusals.ts';
import type { EventSource } from './params/shown-event.ts';
import type { ParamsSource } from './params/shown-params.ts';
import type { IdentityProvider } from './people/identity-provider.ts';
import type { PeopleSettings } from './people/people-settings.ts';
import type { TokenKeys } from './access/tokens.ts';

/** The dependencies of the HTTP interface. */
export interface ApiDependencies extends ParamsSource, EventSource {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  readonly artifacts: ArtifactKeeping;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly settings: ApiSettings;
  /** The secret of an agent's webhook, by its version. */
  readonly webhookSecret: (agentId: string, version: number) => string;
  /** The present state of agents, sessions and keys, for authentication; kept current by the log. */
  readonly agents: LiveStreams<AgentState, AgentEvent>;
  readonly sessions: LiveStreams<SessionState, SessionEvent>;
  readonly apiKeys: LiveStreams<ApiKeyState, ApiKeyEvent>;
  readonly apiKeyUses: ApiKeyUses;
  readonly tasks: LiveStreams<TaskState, TaskEvent>;
  readonly secretStore: SecretStore;
  readonly topics: TopicIndex;
  readonly quotas: LiveQuotas;
  /** All views. */
  readonly projections: readonly Projection[];
  readonly positions: Positions;
  readonly live: LiveRuns;
  readonly auditTail: AuditTail;
  readonly refusals: Refusals;
  /** The identity provider where people sign in; null: they cannot sign in. */
  readonly identityProvider: IdentityProvider | null;
  readonly exportPlaces: ExportPlaces;
  readonly tools: ToolSchemas;
  /**
   * The depth of a run or event that an extension's request causes, by the ticket of the run or event it acts for; 0
   * without one.
   * @throws RefusalError `STATE_CONFLICT` if its chain of runs would become too long
   */
  readonly depthOfRequest: (ticket: string, what: CausedKind) => Promise<number>;
  readonly workers: WorkerDirectory;
  readonly jobs: WorkerJobs;
  /** The position up to which every publication has its runs. */
  readonly requestedUpTo: () => Promise<Position>;
  /** Aborts when the service stops: waiting requests are then answered before connections are closed. */
  readonly stopping: AbortSignal;
}

export interface ApiSettings {
  /** Of package.json. */
  readonly version: string;
  readonly production: boolean;
  readonly maxBodyBytes: number;
  readonly trustProxy: number | readonly string[];
  /** Origins whose pages may call this service; `*`: all; undefined: none. */
  readonly corsOrigins: readonly string[] | undefined;
  /** The address at which clients reach the service, without a trailing slash; undefined: the address that they use. */
  readonly publicUrl: string | undefined;
  /** Requests per window of an agent, or of an address without one; 0: no limit. */
  readonly rateLimit: number;
  readonly rateLimitWindowSeconds: number;
  /** The limits of one agent or namespace. */
  readonly sharing: SharingLimits;
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  /** How long a session of the page lasts. */
  readonly pageSessionSeconds: number;
  readonly allowSecretless: boolean;
  /** The settings by which people sign in with OpenID Connect; null: they cannot sign in. */
  readonly people: PeopleSettings | null;
  /** Reads of the audit and of the past are recorded before they are answered. */
  readonly auditReads: boolean;
  /** How long a silent worker keeps its jobs, and how often it should send a heartbeat. Seconds. */
  readonly jobLeaseSeconds: number;
  readonly jobHeartbeatSeconds: number;
  /**
   * The keys that sign and verify tokens. Read them at each use, because they may be replaced while the service runs.
   */
  readonly tokenKeys: TokenKeys;
}

/** The limits of one agent or namespace; 0: no limit. */
export interface SharingLimits {
  /** The most waiting runs with which more can be requested. */
  readonly waitingRunsPerAgent: number;
  readonly waitingRunsPerNamespace: number;
  /** The most live streams in a process. */
  readonly liveStreamsPerAgent: number;
}

/** The secrets of the log, and the keys that encrypt them. */
export interface SecretStore {
  readonly access: Pick<SecretAccess, 'limitsOf'>;
  readonly cipher: SecretCipher;
  readonly keyring: {
    /** Generates a new key, which encrypts from now on. @returns false if the keys come from `SVC_SECRETS_KEY` */
    rotate(): boolean;
  };
  readonly stored: LiveStreams<SecretState, SecretEvent>;
}

/** Waiting until a view has passed a position of the log. */
export interface Positions {
  /** @param limit milliseconds @returns whether the view passed the position in time */
  wait(projection: Projection, position: Position, limit: number): Promise<boolean> | boolean;
}

/** The tools that a pipeline may use. */
export interface ToolSchemas {
  /** The tools of a namespace. */
  of(namespace: string): KnownTools;
  /** Changes whenever a tool is registered or removed. */
  readonly revision: number;
  /** The tools of the service itself, which every process has. */
  readonly builtIn: readonly DescribedTool[];
  /** Whether a tool belongs to the service or an extension, so that no worker may offer it. */
  isOwn(name: string): boolean;
}

/** The jobs of workers. Methods throw the stores' errors unless they say otherwise. */
export interface WorkerJobs {
  /** How many unfinished runs an agent and its namespace have; null while this process does not know. */
  unfinishedRuns(party: {
    readonly agent: string;
    readonly namespace: string;
  }): { readonly agent: number; readonly namespace: number } | null;
  /**
   * Waits for jobs that fit a worker.
   * @param most the most jobs to return
   * @param seconds how long to wait
   * @returns an empty list after that time
   */
  poll(
    worker: RegisteredWorker,
    most: number,
    seconds: number,
    signal: AbortSignal,
  ): Promise<readonly object[]>;
  /** Ends jobs. @returns for each job: null, or the error */
  finish(
    answers: readonly JobAnswer[],
    sender: JobSender,
    context: CommandContext,
  ): Promise<readonly (RefusalError | null)[]>;
  /** Extends the lease of a job. @throws RefusalError for a lease that is not the job's present one */
  heartbeat(
    lease: JobLease,
    said: {
      readonly progress?: number | undefined;
      readonly log?: readonly {
        readonly level: string;
        readonly message: string;
        readonly at?: string | undefined;
        readonly data?: unknown;
      }[];
    },
    sender: JobSender,
    context: CommandContext,
  ): Promise<{ readonly cancel_requested: boolean }>;
  /** Notes that a worker was heard of. */
  note(workerId: string): void;
  /** The valid leases, and how many milliseconds ago each worker was heard of. */
  present(): Promise<{
    readonly held: readonly HeldJob[];
    readonly ago: ReadonlyMap<string, number>;
  }>;
  /** Why open jobs are still waiting, by the wait's id. */
  reasons(namespace: string, waits: readonly Wait[]): Promise<ReadonlyMap<string, string>>;
}

/** The result of a job, as its worker reported it. */
export type JobAnswer = { readonly job: string; readonly lease: string } & (
  | { readonly result: unknown }
  | { readonly error: string; readonly retryable: boolean }
);

/** The agent that reports about its jobs. */
export interface JobSender {
  readonly agentId: string;
  readonly namespace: string;
}

/** A tool as clients know it. */
export interface DescribedTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of its arguments. */
  readonly schema: object;
}

export interface HealthReports {
  /** Body of `GET /health`, and its status code. */
  report(): Promise<{ readonly status: number; readonly body: object }>;
  /** Body of `GET /health/ready`, and its status code. */
  ready(): Promise<{ readonly status: number; readonly body: object }>;
  /** Body of `GET /health/live`; does no I/O. */
  live(): object;
}
