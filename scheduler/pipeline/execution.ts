import type { Denial } from '../../domain/agents/permissions.ts';
import type { ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import type { Clock } from '../../domain/clock.ts';
import type { EventOf, StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { CompiledPipeline } from '../../domain/pipeline/compile.ts';
import type { Wait } from '../../domain/runs/run-waits.ts';
import type { Secret } from '../../domain/secrets/secret-source.ts';
import type { Span, Telemetry } from '../../observability/telemetry.ts';
import type { NamespaceTools } from '../tools/registry.ts';
import type { ExpressionEvaluator } from './costly-expressions.ts';

/** One attempt of a run, executed from its first unfinished step. */
export interface Execution {
  /** From `compilePipeline`, which caches it per payload. */
  readonly pipeline: CompiledPipeline;
  readonly runId: string;
  readonly namespace: string;
  readonly taskId: string;
  /** ISO 8601. */
  readonly taskCreatedAt: string;
  /** The task's `created_by`: tools act on its behalf. */
  readonly actAs: string;
  /** Variables of expressions. */
  readonly context: {
    /** The task's defaults, overridden by the run's params. */
    readonly params: JsonObject;
    readonly task: JsonObject;
    readonly run: JsonObject;
    readonly event: JsonObject | null;
  };
  /** Step ends in the run's stream, in order, earlier attempts included. */
  readonly finished: readonly StepEnd[];
  /** Suspended steps, and those whose wait has ended. */
  readonly waits: readonly Wait[];
  /** Counted from 1. */
  readonly attempt: number;
  readonly priority: number;
}

/** The records of an execution about its steps. */
export type StepRecord = EventOf<
  'RunStepCompleted' | 'RunStepSuspended' | 'RunStepResumed' | 'RunStepProgressed'
>;

/** Sets the listener that is called when a wait ends during an execution. */
export type ResumptionSource = (listener: (resumed: EventOf<'RunStepResumed'>) => void) => void;

/** Stops the running step. */
export interface StopSignal {
  /** May be created on first use. */
  readonly signal: AbortSignal;
  /** Whether it is aborted, without creating the signal. */
  readonly aborted: boolean;
}

/** The secrets of one run. */
export interface RunSecrets {
  /** Values to mask from the start, because an earlier worker may have used them. */
  readonly masked: Iterable<string>;
  /**
   * Opens a secret for a step.
   * @throws PipelineError if there is none; SecretError if it cannot be read, or its task may not use it
   */
  open(name: string, step: string): Promise<Secret>;
}

/** The dependencies of an execution. */
export interface Environment {
  readonly tools: Pick<NamespaceTools, 'find'>;
  readonly clock: Clock;
  readonly stop: StopSignal;
  readonly secrets: RunSecrets;
  /**
   * Makes records durable, in this order. There is one call at a time, and one before the next step with an outside
   * effect. When it rejects, the execution stops and rejects with the same error.
   */
  readonly record: (records: readonly StepRecord[]) => Promise<void>;
  /** Why the run may call no tool now; null if it may. Default: it always may. */
  readonly denial?: (() => Denial | null | Promise<Denial | null>) | undefined;
  /** Reports waits that end during the execution. Default: none do. */
  readonly onResumed?: ResumptionSource | undefined;
  /** Stores results that are too large for the log. Default: they are cut. */
  readonly artifacts?: ArtifactKeeping | undefined;
  /** The address of a callback. Default: its path. */
  readonly callbackUrl?: ((token: string) => string) | undefined;
  /** Evaluates costly expressions. Default: they are evaluated in this thread. */
  readonly evaluator?: ExpressionEvaluator | undefined;
  /** The span of the attempt, if it is traced. */
  readonly span?: Span | undefined;
  /** Receives the durations of asynchronous tool calls. */
  readonly telemetry?: Pick<Telemetry, 'observe'>;
  /** For the pauses between retries; default `Math.random`. */
  readonly random?: () => number;
}

/** The pending records, in order. They fit into one append. */
export interface Rest {
  /** Records to append before the attempt's last event. Usually none. */
  readonly before?: readonly StepRecord[] | undefined;
  /** Step ends for the attempt's last event. */
  readonly steps: readonly StepEnd[];
}

/** How an attempt ended. */
export type ExecutionResult = Rest &
  (
    | {
        readonly kind: 'succeeded';
        /** For the run's last event; `outputOf` combines it with the step ends. */
        readonly output: JsonObject;
      }
    | {
        readonly kind: 'failed';
        readonly error: string;
        /** The failed step; null for an invalid pipeline. */
        readonly step: string | null;
        readonly retryable: boolean;
        readonly retryAfterMs?: number;
        readonly output: JsonObject;
      }
    | {
        readonly kind: 'aborted';
        readonly output: JsonObject;
      }
    /** All remaining steps are waiting. */
    | { readonly kind: 'suspended' }
  );
