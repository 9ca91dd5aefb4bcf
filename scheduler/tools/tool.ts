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
  /** When the schema replaced another one, ISO 8601. Tasks from before are not checked against it. Default: never. */
  readonly schemaSince?: string;
  /** Answers synchronously and has no outside effect: it has no timeout, and may safely run again after a crash. */
  readonly synchronous?: boolean;
  /** Evaluates an expression in its arguments, whose cost is unknown even if the arguments are constants. */
  readonly evaluates?: boolean;
  /** A worker of its own executes it (`POST /workers`): its steps wait for the worker's result, and `run` is not called. */
  readonly isExternal?: boolean;
  /** Its arguments end up in events: secrets in them are masked before the call. */
  readonly withoutSecrets?: boolean;
  /** It sends secrets only where they may be sent. Others are only given secrets that may be sent everywhere. */
  readonly checksHosts?: boolean;
  /** Its arguments end up in events as they are: a step whose arguments hold a secret fails before the call. */
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
  /** `<run id>:<step>`: the same for every try of this step, on any worker. */
  readonly idempotencyKey: string;
  readonly clock: Clock;
  readonly runId: string;
  readonly taskId: string;
  /** The step, or the item of a `for_each`. */
  readonly step: string;
  /** Of the run; left out outside of runs. */
  readonly attempt?: number;
  /** Id of the agent on whose behalf the run acts: the task's `created_by`. */
  readonly actAs: string;
  /** The secrets in the arguments, with where they may be sent. Default: none. */
  readonly secrets?: readonly Secret[];
  /** Of that agent. */
  readonly namespace: string;
  /** Set for a call outside a run. */
  readonly origin?: CallOrigin;
  /** Of the step, if it is traced. */
  readonly span?: Span;
  /**
   * Replaces secrets with `***`. Results and errors are masked anyway; text that a tool cuts or rewrites must be masked
   * before.
   */
  mask(text: string): string;
  /**
   * Evaluates an expression on a value: at once, or elsewhere if that takes long. Left out where it is always at once.
   * @param work evaluates it; may be given up and repeated
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

/** Returned by a tool whose step waits, within a run. What ends the wait gives the step's result. */
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
