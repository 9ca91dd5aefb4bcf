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

/** Says nothing. */
export const silent: Telemetry = {
  log: { debug() {}, info() {}, warn() {}, error() {} },
  count() {},
  observe() {},
};
