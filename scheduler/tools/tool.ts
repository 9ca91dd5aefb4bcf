import type { Clock } from '../../domain/clock.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { Span } from '../../observability/telemetry.ts';

/** Something a pipeline's step can use. */
export interface Tool {
  /** Unique: a plain name for built-in ones, `<extension_id>.<name>` for an extension's. */
  readonly name: string;
  /** One line for people. */
  readonly description: string;
  /** JSON schema of the arguments (`with`), checked when a task is created and before each call. */
  readonly schema: object;
  /**
   * Answers at once, and does nothing that anyone outside could notice: such a step costs no timer, has no
   * timeout, and may be done again after a crash without harm.
   */
  readonly synchronous?: boolean;
  /**
   * Evaluates an expression that stands in its arguments: what that takes is up to whoever wrote it, also where the
   * arguments are constants.
   */
  readonly evaluates?: boolean;
  /** Its arguments end up in events, so values of secrets in them are masked before the call. */
  readonly withoutSecrets?: boolean;
  /**
   * Does it. What it gives (or resolves to) is the step's result.
   * @param args rendered and checked; not to be changed
   * @throws ToolError to say whether trying again can help; any other error is taken to be passing
   */
  run(args: JsonValue, call: ToolCall): unknown;
}

/** What a tool is told about one call. */
export interface ToolCall {
  /** Aborted when the step has run out of time, or the run is canceled or handed on. */
  readonly signal: AbortSignal;
  /** `<run id>:<step>`: the same whenever this step of this run is tried, by whatever worker. */
  readonly idempotencyKey: string;
  readonly clock: Clock;
  readonly runId: string;
  readonly taskId: string;
  /** The step, or the item of a `for_each`. */
  readonly step: string;
  /** Id of the agent that the run acts for: the task's `created_by`. */
  readonly actAs: string;
  /** Of a call outside of a run; none where a step of one calls. */
  readonly origin?: CallOrigin;
  /** Of the step; none where it is not traced. */
  readonly span?: Span;
  /**
   * Puts `***` for the values of secrets. All that a tool gives or throws is masked later; what it takes a part of,
   * or writes anew, has to be before.
   */
  mask(text: string): string;
  /** Adds a line to the run's log. */
  log(level: LogLevel, message: string, data?: unknown): void;
}

/** Who has called a tool that no run calls, as it stands in the events of what the tool does to the service. */
export interface CallOrigin {
  /** An address, or `extension`. */
  readonly source: string;
  /** Of the request. */
  readonly correlationId: string;
  /** In the caller's words. */
  readonly reason?: string | undefined;
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A call that failed, and whether trying again can help. */
export class ToolError extends Error {
  readonly retryable: boolean;
  /** Not before so many milliseconds from now; undefined: nobody said. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: {
      readonly retryable: boolean;
      readonly retryAfterMs?: number | undefined;
      readonly cause?: unknown;
    },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ToolError';
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
  }
}
