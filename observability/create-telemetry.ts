import { createLog, type LogOptions } from './create-log.ts';
import { Metrics } from './metrics.ts';
import type { Log, Telemetry } from './telemetry.ts';

export interface TelemetryOptions extends LogOptions {
  /**
   * A metric that is not in the catalogue, or has other labels, throws. For tests; otherwise it is logged
   * once, so that a slip in counting never fails what is counted. Default false.
   */
  readonly strict?: boolean;
}

/** What listens behind the telemetry port. */
export interface ProcessTelemetry extends Telemetry {
  readonly metrics: Metrics;
}

/**
 * Makes the telemetry of a process: a log of one JSON object a line (`time`, `level`, `message`, then the
 * fields, without secrets), and its metrics. One of these a process.
 */
export function createTelemetry(options: TelemetryOptions): ProcessTelemetry {
  const log = createLog(options);
  const told = new Set<string>();
  const metrics = new Metrics({
    misuse: (message) => {
      if (options.strict === true) throw new Error(`Telemetry: ${message}`);
      if (told.has(message)) return;
      told.add(message);
      log.error('a metric was used wrongly', { what: message });
    },
  });
  return telemetryOver(log, metrics);
}

/** The telemetry port over a log and metrics. */
export function telemetryOver(log: Log, metrics: Metrics): ProcessTelemetry {
  return {
    log,
    metrics,
    count: (name, labels, by) => {
      metrics.count(name, labels, by);
    },
    observe: (name, value, labels) => {
      metrics.observe(name, value, labels);
    },
  };
}
