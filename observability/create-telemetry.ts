import { createLog, type LogOptions } from './create-log.ts';
import { Metrics } from './metrics.ts';
import { FailureLog } from './failure-log.ts';
import type { Failures, Log, Telemetry } from './telemetry.ts';

export interface TelemetryOptions extends LogOptions {
  /**
   * Whether an unknown metric or label throws, for tests. Otherwise it is logged once, so that a mistake in counting
   * does not break the counted work. Default: false.
   */
  readonly strict?: boolean;
}

/** The implementation of the telemetry port. */
export interface ProcessTelemetry extends Telemetry {
  readonly metrics: Metrics;
}

/**
 * Creates the telemetry of a process: its log (see {@link createLog}) and its metrics.
 */
export function createTelemetry(options: TelemetryOptions): ProcessTelemetry {
  const log = createLog(options);
  const told = new Set<string>();
  const failures = new FailureLog(log);
  const metrics = new Metrics({
    failures,
    misuse: (message) => {
      if (options.strict === true) throw new Error(`Telemetry: ${message}`);
      if (told.has(message)) return;
      told.add(message);
      log.error('invalid use of a metric', { what: message });
    },
  });
  return telemetryOver(log, metrics, failures);
}

/** The telemetry port over a log and metrics. */
export function telemetryOver(
  log: Log,
  metrics: Metrics,
  failures: Failures = new FailureLog(log),
): ProcessTelemetry {
  return {
    log,
    metrics,
    failures,
    count: (name, labels, by) => {
      metrics.count(name, labels, by);
    },
    observe: (name, value, labels) => {
      metrics.observe(name, value, labels);
    },
  };
}
