import { toIso, type Instant } from '../domain/clock.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
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
  /** That no worker has a free slot while runs wait; null while one has. Left out: null. */
  readonly shortage?: SlotShortageState | null;
  readonly now: Instant;
}

/** A shortage of slots, as it is shown. */
export interface SlotShortageState {
  readonly since: Instant;
  /** Of all workers together. */
  readonly slots: number;
  /** The tasks that hold the most, those first. */
  readonly holders: readonly (JsonObject & {
    readonly task_title: string | null;
    readonly task_id: string;
    readonly runs: number;
    readonly since: string;
  })[];
  /** Slots that tools hold which clients call directly. Left out: 0. */
  readonly calls?: number;
}

/** A shortage of slots is told once it has lasted for so long: short ones belong to a busy service. Milliseconds. */
const SHORTAGE_LIMIT = 60_000;

/**
 * Without a worker nothing runs: that is unhealthy once something waits, and degraded before. Runs that wait for a slot
 * for long degrade: the workers do what they can, and somebody should know who holds them.
 */
export function workersCheck({ alive, waiting, shortage = null, now }: WorkersState): HealthCheck {
  const check = (status: HealthStatus, message: string, more: JsonObject = {}): HealthCheck => ({
    ...{ name: 'workers', status, message, alive, waiting },
    ...more,
  });
  if (alive === 0) {
    return waiting > 0
      ? check('unhealthy', `none alive, ${String(waiting)} runs waiting`)
      : check('degraded', 'none alive');
  }
  if (shortage === null || now - shortage.since < SHORTAGE_LIMIT) {
    return check('healthy', `${String(alive)} alive`);
  }
  const { slots, holders, calls = 0 } = shortage;
  const since = toIso(shortage.since);
  const message = `runs have been waiting since ${since}: all slots (${String(slots)}) are taken${heldBy(holders, calls)}`;
  return check('degraded', message, {
    slots: { slots, full_since: since, holders: [...holders], calls },
  });
}

function heldBy(holders: SlotShortageState['holders'], calls: number): string {
  const named = holders.slice(0, NAMED_HOLDERS).map(({ task_title, task_id, runs, since }) => {
    const count = runs === 1 ? '1 run' : `${String(runs)} runs`;
    return `${task_title ?? task_id} (${count} since ${since})`;
  });
  const most = named.length === 0 ? '' : `, most by ${named.join(', ')}`;
  // A call is of no task, and is found in the audit.
  return calls === 0 ? most : `${most}, ${String(calls)} by tools that are called directly`;
}

const NAMED_HOLDERS = 3;

function namesOf(states: readonly ProjectionState[]): string {
  return states.map((state) => state.name).join(', ');
}
