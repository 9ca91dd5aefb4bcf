import { toIso, type Instant } from '../domain/clock.ts';
import type { JsonValue } from '../domain/json.ts';
import { serverProblemOf, type UnusableServerError } from '../domain/server-problem.ts';
import { redactedText } from './redaction.ts';

/** From good to bad. A report has the status of its worst check. */
export const healthStatuses = ['healthy', 'degraded', 'unhealthy'] as const;
export type HealthStatus = (typeof healthStatuses)[number];

/** The parts in the report of `/health`. */
const checkNames = ['database', 'stream_store', 'scheduler', 'workers', 'projections'] as const;
export type CheckName = (typeof checkNames)[number];

/** The result for one part. It may have more fields, none of them secret. */
export interface HealthCheck {
  readonly name: CheckName;
  readonly status: HealthStatus;
  /** One line. */
  readonly message: string;
  readonly [field: string]: JsonValue;
}

/** A response of one of the health endpoints. */
export interface HealthResponse<Body> {
  readonly httpStatus: 200 | 503;
  readonly body: Body;
}

/** The worst status; `healthy` if there is none. */
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

/** `/health`: all checks. 503 if unhealthy; 200 if degraded, because the service still serves. */
export function healthReport(
  checks: readonly HealthCheck[],
  about: { readonly now: Instant; readonly version: string },
): HealthResponse<HealthReport> {
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
 * `/health/ready`: whether the process is ready for traffic. Only the checks that responses depend on count: the stores,
 * and not the scheduler, because clients must be able to ask why nothing runs.
 *
 * @param started false until the process has opened its stores, and while it stops
 */
export function readiness(
  checks: readonly HealthCheck[],
  started: boolean,
): HealthResponse<Readiness> {
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
  /** Random id of this start of the process. */
  readonly instance: string;
}

/** `/health/live`: the process responds. Checks nothing else. */
export function liveness(about: {
  readonly now: Instant;
  readonly version: string;
  readonly instance: string;
}): HealthResponse<Liveness> {
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

/** Checks a store with its port's `ping`, which times out within two seconds. */
export async function pingCheck(name: CheckName, ping: () => Promise<void>): Promise<HealthCheck> {
  try {
    await ping();
    return { name, status: 'healthy', message: 'responding' };
  } catch (error) {
    const problem = serverProblemOf(error);
    if (problem !== null) return problemCheck(name, problem);
    const why = error instanceof Error ? error.message : String(error);
    return { name, status: 'unhealthy', message: `not responding: ${lineOf(why)}` };
  }
}

/**
 * The check of a server that cannot be used. It says whether the problem can end by itself, and omits the user's name.
 */
function problemCheck(name: CheckName, problem: UnusableServerError): HealthCheck {
  const { kind, summary, remedy, lasting } = problem;
  const outlook = lasting ? 'this does not recover by itself; ' : '';
  return {
    name,
    status: 'unhealthy',
    message: `${lineOf(summary)}; ${outlook}${remedy}`,
    cause: kind,
    recovers_by_itself: !lasting,
  };
}

/** The check of a store that responds and rejects writes. @param why its error */
export const refusingCheck = (name: CheckName, why: string): HealthCheck => ({
  name,
  status: 'unhealthy',
  message: `responding, but rejects writes: ${lineOf(why)}`,
});

const lineOf = (text: string): string => redactedText(text).split('\n', 1)[0] ?? '';
