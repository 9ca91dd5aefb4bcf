import { FailureLog } from '../../observability/failure-log.ts';
import { silent, type Log, type Telemetry } from '../../observability/telemetry.ts';

/**
 * Telemetry that reports to a log, failures included.
 * @param log the levels that are collected; others are discarded
 * @param now steady milliseconds
 */
export function reportingTo(log: Partial<Log>, now?: () => number): Telemetry {
  const whole = { ...silent.log, ...log };
  return { ...silent, log: whole, failures: new FailureLog(whole, now) };
}
