import { FailureLog } from '../../observability/failure-log.ts';
import { silent, type Log, type Telemetry } from '../../observability/telemetry.ts';

/**
 * Telemetry that reports to a log, failures included.
 * @param log the levels that are collected; others are discarded
 * @param now monotonic time in milliseconds
 */
export function reportingTo(log: Partial<Log>, now?: () => number): Telemetry {
  const whole = { ...silent.log, ...log };
  return { ...silent, log: whole, failures: new FailureLog(whole, now) };
}

/** Telemetry that collects the messages of its lines, except those of level debug. @param now as {@link reportingTo} */
export function collectingLines(lines: string[], now?: () => number): Telemetry {
  const add = (message: string): void => void lines.push(message);
  return reportingTo({ info: add, warn: add, error: add }, now);
}
