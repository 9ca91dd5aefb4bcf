import type { Instant } from '../domain/clock.ts';
import type { JsonValue } from '../domain/json.ts';
import type { HealthCheck, HealthStatus } from './health.ts';

/** What is known of one projection. */
export interface ProjectionState {
  readonly name: string;
  /** How far behind the end of the log, in seconds; 0 when it has caught up. */
  readonly lagSeconds: number;
  /** Whether its checkpoint has moved of late. */
  readonly progressed: boolean;
  /** How many documents are parked on an event that could not be folded. */
  readonly parked: number;
  /** Whether it has passed more than the log has: it was folded from another one. Left out: no. */
  readonly ahead?: boolean;
}

/**
 * A projection that lags is unhealthy only when it also makes no progress: one that is catching up after an
 * outage, or being filled, needs time and not a restart. Parked documents and lag alone degrade, and that nobody folds.
 *
 * @param led whether some process has the projector's role
 */
export function projectionsCheck(
  states: readonly ProjectionState[],
  limitSeconds: number,
  led: boolean,
): HealthCheck {
  const late = states.filter((state) => state.lagSeconds > limitSeconds);
  const stuck = late.filter((state) => !state.progressed);
  const parked = states.filter((state) => state.parked > 0);
  const name = 'projections';
  const ahead = states.filter((state) => state.ahead === true);
  if (ahead.length > 0) {
    const message = `${namesOf(ahead)}: ahead of the log, so of another one; svc doctor says what to do`;
    return { name, status: 'unhealthy', message };
  }
  if (stuck.length > 0) {
    const message = `${namesOf(stuck)}: behind by more than ${String(limitSeconds)} s, and not moving`;
    return { name, status: 'unhealthy', message };
  }
  if (!led) return { name, status: 'degraded', message: 'no process is projecting' };
  if (late.length > 0) {
    return { name, status: 'degraded', message: `${namesOf(late)}: catching up` };
  }
  if (parked.length > 0) {
    return { name, status: 'degraded', message: `${namesOf(parked)}: with parked documents` };
  }
  const behind = Math.max(0, ...states.map((state) => state.lagSeconds));
  const message = behind < 1 ? 'caught up' : `up to ${String(Math.ceil(behind))} s behind`;
  return { name, status: 'healthy', message };
}

/** What the last pass of an audit came to. */
export interface AuditState {
  /** When it ended, ISO 8601. */
  readonly at: string;
  readonly found: number;
  readonly mended: number;
  /** Parts that could not look. */
  readonly faults: string[];
  /** Tasks that can't be decided, and that the audit can't mend; the first few. */
  readonly stuck: string[];
  /** How many were found, by kind. */
  readonly kinds: Readonly<Record<string, number>>;
}

/** What is known of the scheduler. */
export interface SchedulerState {
  /** Whether some process has the scheduler's role. */
  readonly led: boolean;
  /** What operators hold it for; null while they don't. Left out: null. */
  readonly hold?: { readonly reason: string; readonly by: string; readonly since: string } | null;
  /** Active tasks whose time has passed, beyond the grace, without a fire or a recorded reason; names of some. */
  readonly overdue: { readonly count: number; readonly names: readonly string[] };
  /** Of the scheduler; null before its first pass. */
  readonly audit: AuditState | null;
  /** Of the last worker whose queue was not as it should be; null for none. */
  readonly queues: AuditState | null;
  readonly now: Instant;
}

/** An audit that has not passed for so long is not at work. Milliseconds. */
const AUDIT_LIMIT = 5 * 60_000;

/** What a worker's audit found is shown for so long. Milliseconds. */
const QUEUES_SHOWN = 60 * 60_000;

/**
 * A task that is overdue with no reason recorded is what the service must never let happen. What the audit can't mend,
 * and an audit that does not pass, degrade; what it has mended is only shown.
 */
export function schedulerCheck(state: SchedulerState): HealthCheck {
  const { led, hold = null, overdue, audit, now } = state;
  const queues = isWithin(state.queues, now, QUEUES_SHOWN) ? state.queues : null;
  const shown = {
    hold: hold === null ? null : { ...hold },
    audit: shownAudit(audit),
    queues: shownAudit(queues),
  };
  const check = (status: HealthStatus, message: string): HealthCheck => ({
    name: 'scheduler',
    status,
    message,
    ...shown,
  });
  if (overdue.count > 0) {
    const some = overdue.names.slice(0, MOST_NAMES).join(', ');
    const many = overdue.count === 1 ? '1 task is' : `${String(overdue.count)} tasks are`;
    return check('unhealthy', `${many} overdue with no reason recorded: ${some}`);
  }
  if (hold !== null) {
    return check('degraded', `on hold since ${hold.since}, by ${hold.by}: ${hold.reason}`);
  }
  if (!led) return check('degraded', 'no process is scheduling');
  if (audit === null) return check('healthy', 'at work');
  if (audit.stuck.length > 0) {
    return check('degraded', `can not be decided: ${audit.stuck.join(', ')}`);
  }
  if (audit.found > audit.mended) {
    const left = String(audit.found - audit.mended);
    return check('degraded', `the audit has found what it can not mend: ${left}`);
  }
  if (audit.faults.length > 0) {
    return check('degraded', `the audit could not look at all: ${audit.faults.join(', ')}`);
  }
  if (!isWithin(audit, now, AUDIT_LIMIT)) {
    return check('degraded', `the audit has not passed since ${audit.at}`);
  }
  return check('healthy', 'at work');
}

const MOST_NAMES = 5;

function isWithin(audit: AuditState | null, now: Instant, limit: number): boolean {
  return audit !== null && now - Date.parse(audit.at) <= limit;
}

function shownAudit(audit: AuditState | null): JsonValue {
  return audit === null ? null : { ...audit };
}

/** What is known of the workers, in all processes. */
export interface WorkersState {
  readonly alive: number;
  /** Runs that are due and that nobody has taken. */
  readonly waiting: number;
}

/** Without a worker nothing runs: that is unhealthy once something waits, and degraded before. */
export function workersCheck({ alive, waiting }: WorkersState): HealthCheck {
  const name = 'workers';
  if (alive > 0)
    return { name, status: 'healthy', message: `${String(alive)} alive`, alive, waiting };
  return waiting > 0
    ? {
        name,
        status: 'unhealthy',
        message: `none alive, ${String(waiting)} runs waiting`,
        alive,
        waiting,
      }
    : { name, status: 'degraded', message: 'none alive', alive, waiting };
}

function namesOf(states: readonly ProjectionState[]): string {
  return states.map((state) => state.name).join(', ');
}
