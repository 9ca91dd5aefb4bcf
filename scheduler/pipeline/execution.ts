import type { Clock } from '../../domain/clock.ts';
import type { StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { CompiledPipeline } from '../../domain/pipeline/compile.ts';
import type { Span, Telemetry } from '../../observability/telemetry.ts';
import type { ToolRegistry } from '../tools/registry.ts';

/** One attempt of a run, executed from its first unfinished step. */
export interface Execution {
  /** From `compilePipeline`, which caches it per payload. */
  readonly pipeline: CompiledPipeline;
  readonly runId: string;
  readonly taskId: string;
  /** The task's `created_by`: tools act on its behalf. */
  readonly actAs: string;
  /** Variables of expressions. `params` comes with the pipeline. */
  readonly context: {
    readonly task: JsonObject;
    readonly run: JsonObject;
    readonly event: JsonObject | null;
  };
  /** Step ends in the run's stream, in order, earlier attempts included. */
  readonly finished: readonly StepEnd[];
  /** Counted from 1. */
  readonly attempt: number;
}

/** Stops the running step. */
export interface StopSignal {
  /** May be created on first use. */
  readonly signal: AbortSignal;
  /** Whether it is aborted, without creating the signal. */
  readonly aborted: boolean;
}

/** What an execution uses. */
export interface Environment {
  readonly tools: Pick<ToolRegistry, 'find'>;
  readonly clock: Clock;
  readonly stop: StopSignal;
  /** The value of `${secrets.NAME}`. */
  readonly secrets: (name: string) => string | undefined;
  /**
   * Makes step ends durable, in this order. Called one at a time, and before the next step with an outside effect.
   * When it rejects, the execution stops and rejects with the same error.
   */
  readonly record: (steps: readonly StepEnd[]) => Promise<void>;
  /** Of the attempt, if it is traced. */
  readonly span?: Span | undefined;
  /** Receives the durations of asynchronous tool calls. */
  readonly telemetry?: Pick<Telemetry, 'observe'>;
  /** For the pauses between retries; default `Math.random`. */
  readonly random?: () => number;
}

/** How an attempt ended. `steps` are not recorded yet, and fit into one event. */
export type ExecutionResult =
  | {
      readonly kind: 'succeeded';
      readonly steps: readonly StepEnd[];
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
      /** Recorded before a retry too, which does not repeat the successful ones. */
      readonly steps: readonly StepEnd[];
      readonly output: JsonObject;
    }
  | {
      readonly kind: 'aborted';
      readonly steps: readonly StepEnd[];
      readonly output: JsonObject;
    };
