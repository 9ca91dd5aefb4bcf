import type { Instant } from '../../domain/clock.ts';
import type { AppendResult, NewEvent, StreamAppend } from '../../domain/event-store.ts';
import type { DataOf, RunEvent, StepEnd } from '../../domain/events/catalogue.ts';
import type { KnownRun } from '../../domain/runs/run.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Span } from '../../observability/telemetry.ts';
import type { ExecutionResult } from '../pipeline/pipeline-execution.ts';
import type { QueuedRun } from './run-queue.ts';

/** Why a run's work is stopped. */
export type AbortCause = 'canceled' | 'timeout' | 'drained' | 'fenced';

/** A first attempt whose start stands in the log already, right behind the run's request. */
export interface Begun {
  readonly task: LiveTask;
  readonly startedAt: string;
  /** Of its RunStarted. */
  readonly revision: number;
  /** When its end may be made; null: at once. */
  readonly ready: () => Promise<void> | null;
}

/** What was made ahead of a run that may begin early. For one use. */
export interface EarlyDraft {
  readonly run: QueuedRun;
  readonly task: LiveTask;
  readonly request: DataOf<'RunRequested'>;
  /** Its RunStarted, as it is at {@link at}. */
  readonly event: NewEvent;
  readonly at: Instant;
}

/** Runs that begin in the append that requests them. */
export interface EarlyStarts {
  /** Makes ahead what `begin` needs of a run; null where it does not begin early. */
  draft(id: string, request: DataOf<'RunRequested'>, at: Instant): EarlyDraft | null;
  /** A worker of this process takes the run now; null where none does. */
  begin(draft: EarlyDraft, now: Instant): EarlyStart | null;
  /** More are about to begin: what has begun ends behind them. @returns to be called once there are no more */
  hold(): () => void;
}

/** A worker of this process has taken a run that is about to be requested. One of `began` and `failed` is to be called. */
export interface EarlyStart {
  /** The run's RunStarted, to be appended right behind its RunRequested, in one. */
  readonly event: NewEvent;
  /** Both stand in the log. @param revision of the start */
  began(revision: number): void;
  /** They do not, or nobody knows: the log will tell, and the run is taken as any other. */
  failed(): void;
}

/** Whether a run may start now. */
export type Admission =
  | { readonly kind: 'go' }
  /** Not before then, unless something changes. */
  | { readonly kind: 'wait'; readonly until: Instant }
  /** Never: this event ends it. */
  | { readonly kind: 'end'; readonly event: RunEvent };

/** What goes to the log right behind the end of a run, in the same call, if that succeeds. */
export interface HandOver {
  readonly append: StreamAppend;
  /** It stands in the log. */
  done(result: AppendResult): void;
  /** It does not, or nobody knows: what it was for is still to be done. */
  failed(): void;
}

/** What executing a pipeline came to. */
export type PipelineOutcome = ExecutionResult;

/** What a runner of pipelines is to do. */
export interface Work {
  readonly run: QueuedRun;
  readonly task: LiveTask;
  /** What the run's stream holds; null where that is the request alone. */
  readonly known: KnownRun | null;
  readonly attempt: number;
  /** Ends the work. Made when it is first asked for, which most short runs never do: it is dear. */
  readonly signal: AbortSignal;
  /** Whether the work is to end, without having the signal made. Default: as the signal says. */
  readonly isStopped?: (() => boolean) | undefined;
  readonly record: (steps: readonly StepEnd[]) => Promise<void>;
  /** Of the attempt; none where it is not traced. */
  readonly span?: Span | undefined;
}

/** Executes a task's pipeline: `scheduler/pipeline/pipeline-execution.ts`, given its tools. */
export type PipelineRunner = (work: Work) => PipelineOutcome | Promise<PipelineOutcome>;
