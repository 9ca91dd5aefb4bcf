/**
 * The telemetry port: what every room may say about what it does, without knowing who listens.
 * `observability/` has what listens; tests use {@link silent}.
 */
export interface Telemetry {
  readonly log: Log;
  /** Adds to a counter. Label values come from closed sets, never from input. */
  count(name: CounterName, labels?: Labels, by?: number): void;
  /** Records one measured value; seconds for durations. */
  observe(name: HistogramName, value: number, labels?: Labels): void;
  /** Traces; none where they are off, so that whoever would trace asks for this and does nothing more. */
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
 * What is done for one outside cause, over all parts and processes. A trace goes on through the log: whoever appends
 * because of a span writes its `traceparent` into the events, and whoever acts because of an event begins a span with
 * that as its parent.
 */
export interface Traces {
  /** Begins a span; it is told of once it has ended. */
  begin(name: string, options?: SpanOptions): Span;
  /** The span that the caller's code runs within ({@link Span.within}); none where it does so in none. */
  active(): Span | undefined;
}

export interface SpanOptions {
  /** What it stands for, seen from outside: default `internal`. */
  readonly kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  /** A span of this process, or the `traceparent` of one elsewhere. Left out, or no such: it begins a trace. */
  readonly parent?: Span | string | undefined;
  /** Each the `traceparent` of something that it comes from without being a part of it. */
  readonly links?: readonly string[];
  readonly attributes?: SpanAttributes;
}

/** Never tokens, secrets, or what may hold them: an address's path and query, a body. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Something that takes time, as a part of a trace. */
export interface Span {
  /** Of this span, as W3C Trace Context writes it: what events carry. */
  readonly traceparent: string;
  /** What a request that is sent because of it carries; nothing where the operator wants none to go out. */
  readonly headers: Readonly<Record<string, string>>;
  /** Begins a span that is a part of this one. */
  child(name: string, options?: Omit<SpanOptions, 'parent'>): Span;
  /** Names it by what was found out only later. */
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** It has come to nothing. @param type of a small set: a code, a name @param message for people */
  fail(type: string, message?: string): void;
  end(): void;
  /** Calls with this as the active span, also in all that goes on asynchronously. */
  within<T>(call: () => T): T;
}

/** Says nothing. */
export const silent: Telemetry = {
  log: { debug() {}, info() {}, warn() {}, error() {} },
  count() {},
  observe() {},
};
