import type { UnusableServerError } from '../domain/server-problem.ts';

/**
 * The telemetry port, which every room may use. `observability/` implements it. Tests use {@link silent}.
 */
export interface Telemetry {
  readonly log: Log;
  /** Adds to a counter. Label values come from closed sets, never from input. */
  count(name: CounterName, labels?: Labels, by?: number): void;
  /** Records a value. Durations are in seconds. */
  observe(name: HistogramName, value: number, labels?: Labels): void;
  /** Reports failures that are retried. Every loop that retries uses it instead of {@link log}. */
  readonly failures: Failures;
  /** Undefined with traces off. */
  readonly traces?: Traces | undefined;
}

export type Labels = Readonly<Record<string, string>>;
export type CounterName = string;
export type HistogramName = string;

/** One line each, with structured fields. Never tokens or secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Reports failures of retried work, by cause. The first failure is logged at level error if the cause cannot recover by
 * itself, otherwise at warn. While the cause lasts, one line a minute has the number of failures. A last line, at level
 * info, says that it is over. Several loops that fail for one cause share these lines. Stacks are logged only at level
 * debug.
 */
export interface Failures {
  /**
   * Reports that work has failed. If a server cannot be used or a store is unavailable, that is the cause, whatever the
   * work.
   * @param work what failed, from a closed set of phrases: `could not renew the heartbeat`
   * @param fields of the line, if this failure gets one
   */
  failed(work: string, error: unknown, fields?: LogFields): void;
  /** Reports that work has succeeded. Cheap enough to call after every success. */
  worked(work: string): void;
  /**
   * Reports that a server cannot be used. Called by the server's adapter, which also knows when it is over.
   * @param former the problem that this one replaces; its end is not logged
   */
  unusable(problem: UnusableServerError, former?: UnusableServerError): void;
  /** Reports that the problem is over. */
  usable(problem: UnusableServerError): void;
}

/**
 * A trace joins the work for one external cause across all processes. It continues through the log: code that appends
 * within a span writes its `traceparent` into the events, and code that acts on an event starts a span with that parent.
 */
export interface Traces {
  /** Starts a span, which is reported once it has ended. */
  begin(name: string, options?: SpanOptions): Span;
  /** The span that the caller runs in ({@link Span.within}), if any. */
  active(): Span | undefined;
}

export interface SpanOptions {
  /** Default: `internal`. */
  readonly kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  /** A span of this process, or the `traceparent` of another. Without a valid one, a new trace starts. */
  readonly parent?: Span | string | undefined;
  /** The `traceparent` of related spans of other traces. */
  readonly links?: readonly string[];
  readonly attributes?: SpanAttributes;
}

/** Never tokens, secrets, or values that may contain them, such as paths, queries and bodies. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A timed operation, part of a trace. */
export interface Span {
  /** This span in W3C Trace Context form, as events carry it. */
  readonly traceparent: string;
  /** Headers for outgoing requests. Empty if propagation is off. */
  readonly headers: Readonly<Record<string, string>>;
  /** Starts a child span. */
  child(name: string, options?: Omit<SpanOptions, 'parent'>): Span;
  /** Changes its name. */
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** Marks it as failed. @param type an error code or name from a small set */
  fail(type: string, message?: string): void;
  end(): void;
  /** Calls a function with this as the active span, also in its asynchronous continuations. */
  within<T>(call: () => T): T;
}

/** Discards everything. */
export const silent: Telemetry = {
  log: { debug() {}, info() {}, warn() {}, error() {} },
  count() {},
  observe() {},
  failures: { failed() {}, worked() {}, unusable() {}, usable() {} },
};
