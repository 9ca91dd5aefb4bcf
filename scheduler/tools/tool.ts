import type { Expression } from '../../domain/pipeline/expression.ts';
import type { WaitsFor } from '../../domain/runs/run-waits.ts';
import type { Clock, Instant } from '../../domain/clock.ts';
import type { Secret } from '../../domain/secrets/secret-source.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { Span } from '../../observability/telemetry.ts';

/** A tool that pipeline steps can use. */
export interface Tool {
  /** Unique; `<extension_id>.<name>` for a tool of an extension. */
  readonly name: string;
  /** One line. */
  readonly description: string;
  /**
   * JSON schema of the arguments (`with`). Checked when a task is created and before each call. Arguments that may hold
   * a secret are marked `x-secret`.
   */
  readonly schema: object;
  /** When the schema replaced another one, ISO 8601. Older tasks are not checked against it. Default: never. */
  readonly schemaSince?: string;
  /** Answers synchronously and has no outside effect: it has no timeout, and may safely run again after a crash. */
  readonly synchronous?: boolean;
  /**
   * Whether it evaluates an expression in its arguments. The cost of that is unknown even if the arguments are
   * constants.
   */
  readonly evaluates?: boolean;
  /**
   * Whether an external worker executes it (`POST /workers`). Its steps wait for the worker's result, and `run` is not
   * called.
   */
  readonly isExternal?: boolean;
  /** Its arguments end up in events: secrets in them are masked before the call. */
  readonly withoutSecrets?: boolean;
  /** Whether it sends secrets only to their allowed hosts. Other tools only get secrets that may be sent everywhere. */
  readonly checksHosts?: boolean;
  /**
   * Whether its arguments are written to events unmasked. A step whose arguments contain a secret then fails before the
   * call.
   */
  readonly recordsArguments?: boolean;
  /**
   * @param args rendered and checked; read-only
   * @returns the step's result, or a {@link Suspension} if the step waits for it; or a promise of either
   * @throws ToolError to state whether a retry can help; any other error is retried
   */
  run(args: JsonValue, call: ToolCall): unknown;
}

/** The context of one call. */
export interface ToolCall {
  /** Aborted when the step times out, or its run is canceled or moves to another worker. */
  readonly signal: AbortSignal;
  /** `<run id>:<step>`, which is the same for every try of this step on any worker. */
  readonly idempotencyKey: string;
  readonly clock: Clock;
  readonly runId: string;
  readonly taskId: string;
  /** The step, or the item of a `for_each`. */
  readonly step: string;
  /** The run's; left out outside runs. */
  readonly attempt?: number;
  /** Id of the agent on whose behalf the run acts: the task's `created_by`. */
  readonly actAs: string;
  /** The secrets in the arguments, and the hosts to which they may be sent. Default: none. */
  readonly secrets?: readonly Secret[];
  /** The agent's namespace. */
  readonly namespace: string;
  /** Set for a call outside a run. */
  readonly origin?: CallOrigin;
  /** The span of the step, if it is traced. */
  readonly span?: Span;
  /**
   * Replaces secrets with `***`. Results and errors are masked anyway. But a tool must mask a string before it cuts or
   * rewrites it.
   */
  mask(text: string): string;
  /**
   * Evaluates an expression on a value: at once, or in another thread if that takes long. Left out if it is always
   * evaluated at once.
   * @param work evaluates it; may be stopped and repeated
   */
  evaluateOn?<T>(expression: Expression, value: unknown, work: () => T): T | Promise<T>;
  /** Adds a line to the run's log. */
  log(level: LogLevel, message: string, data?: unknown): void;
}

/** The caller of a tool outside a run, for the metadata of resulting events. */
export interface CallOrigin {
  /** An address, or `extension`. */
  readonly source: string;
  readonly correlationId: string;
  /** Given by the caller. */
  readonly reason?: string | undefined;
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * Returned by a tool whose step waits, which is only possible in a run. The end of the wait provides the step's result.
 */
export class Suspension {
  readonly waitsFor: WaitsFor;
  /** When the wait ends by itself. */
  readonly until: Instant;

  constructor(waitsFor: WaitsFor, until: Instant) {
    this.waitsFor = waitsFor;
    this.until = until;
  }
}

/** A failed call, and whether a retry can help. */
export class ToolError extends Error {
  readonly retryable: boolean;
  /** Minimum pause before a retry, in milliseconds, if known. */
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
