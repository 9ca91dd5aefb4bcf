import type { Clock, Instant } from '../../domain/clock.ts';
import type { AppendResult, EventStore, StreamAppend } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import type { KnownRun } from '../../domain/runs/run.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Span, Telemetry } from '../../observability/telemetry.ts';
import type {
  ExecutionResult,
  ResumptionSource,
  StepRecord,
  StopSignal,
} from '../pipeline/execution.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { Membership } from '../processes/membership.ts';
import type { QueuedRun } from './queued-run.ts';
import type { RunQueue } from './run-queue.ts';
import type { RunStart } from './run-start.ts';

/** The parts of a process that execute runs. */
export interface RunParts {
  readonly store: EventStore;
  readonly queue: RunQueue;
  readonly tasks: PinnedTasks;
  readonly membership: Membership;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Why a run's work is stopped. `fenced`: another process has taken the run. */
export type AbortCause = 'canceled' | 'timeout' | 'drained' | 'fenced';

/** A first attempt whose start was appended with the run's request. */
export interface StartedRun {
  readonly task: LiveTask;
  readonly start: RunStart;
  /** Resolves when the end may be written; null: at once. */
  readonly beforeEnd: () => Promise<void> | null;
}

/** Whether a run may start now. */
export type Admission =
  | { readonly kind: 'go' }
  /** The run must wait until this time, unless something changes. */
  | { readonly kind: 'wait'; readonly until: Instant }
  /** The run must never start; this event ends it. */
  | { readonly kind: 'end'; readonly event: RunEvent };

/** An append to another stream in the same call as a run's end, to pass the run's key on. */
export interface HandOver {
  readonly append: StreamAppend;
  /** The append is in the log. */
  done(result: AppendResult): void;
  /** The append is not in the log, or may not be. The key must be released later. */
  failed(): void;
}

/** How the execution of a pipeline ended. */
export type PipelineOutcome = ExecutionResult;

/** One attempt for a pipeline runner. */
export interface Work {
  readonly run: QueuedRun;
  readonly task: LiveTask;
  /** The run's stream; null if it has only the request. */
  readonly known: KnownRun | null;
  readonly attempt: number;
  readonly stop: StopSignal;
  /** Makes records durable. */
  readonly record: (records: readonly StepRecord[]) => Promise<void>;
  /** Reports waits that end during the attempt. */
  readonly onResumed?: ResumptionSource | undefined;
  /** The span of the attempt, if it is traced. */
  readonly span?: Span | undefined;
}

/** Executes a task's pipeline: `scheduler/pipeline/pipeline-execution.ts`, given its tools. */
export type PipelineRunner = (work: Work) => PipelineOutcome | Promise<PipelineOutcome>;
