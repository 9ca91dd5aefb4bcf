import { toIso, type Instant } from '../domain/clock.ts';
import type { JsonValue } from '../domain/json.ts';
import { redactedText } from './redaction.ts';

/** From good to bad; a report is as bad as its worst check. */
export const healthStatuses = ['healthy', 'degraded', 'unhealthy'] as const;
export type HealthStatus = (typeof healthStatuses)[number];

/** The parts that the report of `/health` tells of. */
const checkNames = ['database', 'stream_store', 'scheduler', 'workers', 'projections'] as const;
export type CheckName = (typeof checkNames)[number];

/** What was found of one part. Further fields may follow; none may hold a secret. */
export interface HealthCheck {
  readonly name: CheckName;
  readonly status: HealthStatus;
  /** One line for people. */
  readonly message: string;
  readonly [field: string]: JsonValue;
}

/** An answer of one of the three health paths. */
export interface HealthAnswer<Body> {
  readonly httpStatus: 200 | 503;
  readonly body: Body;
}

/** The worst of some statuses; healthy of none. */
export function worstOf(statuses: readonly HealthStatus[]): HealthStatus {
  const rank = Math.max(0, ...statuses.map((status) => healthStatuses.indexOf(status)));
  return healthStatuses[rank] ?? 'unhealthy';
}

export interface HealthReport {
  readonly status: HealthStatus;
  readonly timestamp: string;
  readonly version: string;
  readonly checks: readonly HealthCheck[];
}

/** `/health`: everything that was found. 503 when unhealthy; degraded still serves, and is 200. */
export function healthReport(
  checks: readonly HealthCheck[],
  about: { readonly now: Instant; readonly version: string },
): HealthAnswer<HealthReport> {
  const status = worstOf(checks.map((check) => check.status));
  return {
    httpStatus: status === 'unhealthy' ? 503 : 200,
    body: { status, timestamp: toIso(about.now), version: about.version, checks },
  };
}

export interface Readiness {
  readonly status: 'ready' | 'not_ready';
  readonly checks: readonly HealthCheck[];
}

/**
 * `/health/ready`: whether traffic may come. Given are only the checks of what answering needs (the stores,
 * not the scheduler: a process that could not answer why nothing runs would help nobody).
 *
 * @param started false until the process has opened its stores, and again once it is stopping
 */
export function readiness(
  checks: readonly HealthCheck[],
  started: boolean,
): HealthAnswer<Readiness> {
  const ready = started && checks.every((check) => check.status !== 'unhealthy');
  return {
    httpStatus: ready ? 200 : 503,
    body: { status: ready ? 'ready' : 'not_ready', checks },
  };
}

export interface Liveness {
  readonly status: 'alive';
  readonly timestamp: string;
  readonly version: string;
  /** Random, of this start of the process alone. */
  readonly instance: string;
}

/** `/health/live`: that the process answers at all, and which one it is; asks nothing of anybody. */
export function liveness(about: {
  readonly now: Instant;
  readonly version: string;
  readonly instance: string;
}): HealthAnswer<Liveness> {
  return {
    httpStatus: 200,
    body: {
      status: 'alive',
      timestamp: toIso(about.now),
      version: about.version,
      instance: about.instance,
    },
  };
}

/** The check of a store by its port's `ping` (which gives up by itself, within two seconds). */
export async function pingCheck(name: CheckName, ping: () => Promise<void>): Promise<HealthCheck> {
  try {
    await ping();
    return { name, status: 'healthy', message: 'answers' };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { name, status: 'unhealthy', message: `does not answer: ${lineOf(why)}` };
  }
}

/** The check of a store that answers, and keeps nothing. @param why what it said */
export const refusingCheck = (name: CheckName, why: string): HealthCheck => ({
  name,
  status: 'unhealthy',
  message: `answers, but takes nothing: ${lineOf(why)}`,
});

const lineOf = (text: string): string => redactedText(text).split('\n', 1)[0] ?? '';
