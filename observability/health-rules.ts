import { toIso, type Instant } from '../domain/clock.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import type { HealthCheck, HealthStatus } from './health.ts';

/** The state of one projection. */
export interface ProjectionState {
  readonly name: string;
  /** Lag in seconds; 0 when caught up. */
  readonly lagSeconds: number;
  /** Whether its checkpoint has moved recently. */
  readonly progressed: boolean;
  /** Parked documents. */
  readonly parked: number;
  /** Whether its checkpoint is past the end of the log, so it belongs to another log. Default: false. */
  readonly ahead?: boolean;
}

/**
 * A lagging projection is unhealthy only if it makes no progress. A projection that is catching up, or being built,
 * needs time and not a restart. Lag, parked documents and a missing projector make it degraded.
 *
 * @param led whether a process leads the projection
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
    const message = `${namesOf(ahead)}: ahead of the log, so built from another log; run svc doctor`;
    return { name, status: 'unhealthy', message };
  }
  if (stuck.length > 0) {
    const message = `${namesOf(stuck)}: more than ${String(limitSeconds)} s behind and making no progress`;
    return { name, status: 'unhealthy', message };
  }
  if (!led) return { name, status: 'degraded', message: 'no process is projecting' };
  if (late.length > 0) {
    return { name, status: 'degraded', message: `${namesOf(late)}: catching up` };
  }
  if (parked.length > 0) {
    return { name, status: 'degraded', message: `${namesOf(parked)}: has parked documents` };
  }
  const behind = Math.max(0, ...states.map((state) => state.lagSeconds));
  const message = behind < 1 ? 'caught up' : `up to ${String(Math.ceil(behind))} s behind`;
  return { name, status: 'healthy', message };
}

/** The result of the last pass of an audit. */
export interface AuditState {
  /** When it ended, ISO 8601. */
  readonly at: string;
  readonly found: number;
  readonly mended: number;
  /** Checks that failed. */
  readonly faults: string[];
  /** The first few tasks that cannot be decided and that the audit cannot repair. */
  readonly stuck: string[];
  /** Number of findings by kind. */
  readonly kinds: Readonly<Record<string, number>>;
}

/** An order that put the service on hold. */
export interface HoldShown {
  readonly reason: string;
  /** An agent's id. */
  readonly by: string;
  /** The agent's name; null if there is no agent. */
  readonly by_name: string | null;
  /** ISO 8601. */
  readonly since: string;
}

/** The state of the scheduler. */
export interface SchedulerState {
  /** Whether a process leads the scheduling. */
  readonly led: boolean;
  /** The hold in force. Default: null. */
  readonly hold?: HoldShown | null;
  /** Active tasks that are past their grace without a fire or a recorded reason, with some names. */
  readonly overdue: { readonly count: number; readonly names: readonly string[] };
  /** The scheduler's audit; null before its first pass. */
  readonly audit: AuditState | null;
  /** The last audit of a worker's queue with findings; null for none. */
  readonly queues: AuditState | null;
  readonly now: Instant;
}

/** Maximum age of the last complete audit. Milliseconds. */
const AUDIT_LIMIT = 5 * 60_000;

/** How long findings of a worker's audit are shown. Milliseconds. */
const QUEUES_SHOWN = 60 * 60_000;

/**
 * An overdue task without a recorded reason makes the service unhealthy: this must never happen. Findings that the
 * audit cannot repair, and an audit that does not complete, make it degraded. Repaired findings are only shown.
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
    const some = overdue.names.slice(0, MAX_NAMES).join(', ');
    const many = overdue.count === 1 ? '1 task is' : `${String(overdue.count)} tasks are`;
    return check('unhealthy', `${many} overdue with no reason recorded: ${some}`);
  }
  if (hold !== null) {
    return check(
      'degraded',
      `on hold since ${hold.since}, by ${hold.by_name ?? hold.by}: ${hold.reason}`,
    );
  }
  if (!led) return check('degraded', 'no process is scheduling');
  if (audit === null) return check('healthy', 'at work');
  if (audit.stuck.length > 0) {
    return check('degraded', `cannot be decided: ${audit.stuck.join(', ')}`);
  }
  if (audit.found > audit.mended) {
    const left = String(audit.found - audit.mended);
    return check('degraded', `the audit found problems that it cannot repair: ${left}`);
  }
  if (audit.faults.length > 0) {
    return check('degraded', `checks of the audit failed: ${audit.faults.join(', ')}`);
  }
  if (!isWithin(audit, now, AUDIT_LIMIT)) {
    return check('degraded', `the audit has not completed since ${audit.at}`);
  }
  return check('healthy', 'at work');
}

const MAX_NAMES = 5;

function isWithin(audit: AuditState | null, now: Instant, limit: number): boolean {
  return audit !== null && now - Date.parse(audit.at) <= limit;
}

function shownAudit(audit: AuditState | null): JsonValue {
  return audit === null ? null : { ...audit };
}

/** The state of the workers of all processes. */
export interface WorkersState {
  readonly alive: number;
  /** Due runs that no worker has taken. */
  readonly waiting: number;
  /** Set while runs wait and no worker has a free slot. Default: null. */
  readonly shortage?: SlotShortageState | null;
  readonly now: Instant;
}

/** A shortage of slots. */
export interface SlotShortageState {
  readonly since: Instant;
  /** Slots of all workers together. */
  readonly slots: number;
  /** The tasks that hold the most slots, largest first. */
  readonly holders: readonly (JsonObject & {
    readonly task_title: string | null;
    readonly task_id: string;
    readonly runs: number;
    readonly since: string;
  })[];
  /** Slots held by direct calls of tools. Default: 0. */
  readonly calls?: number;
}

/** A shorter shortage of slots is normal in a busy service. Milliseconds. */
const SHORTAGE_LIMIT = 60_000;

/**
 * Without a live worker, the service is unhealthy if runs wait and degraded otherwise. A long shortage of slots makes
 * it degraded, and the report names the tasks that hold the slots.
 */
export function workersCheck({ alive, waiting, shortage = null, now }: WorkersState): HealthCheck {
  const check = (status: HealthStatus, message: string, more: JsonObject = {}): HealthCheck => ({
    name: 'workers',
    status,
    message,
    alive,
    waiting,
    ...more,
  });
  if (alive === 0) {
    return waiting > 0
      ? check('unhealthy', `no live worker, ${String(waiting)} runs waiting`)
      : check('degraded', 'no live worker');
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
  const named = holders.slice(0, MAX_NAMED_HOLDERS).map(({ task_title, task_id, runs, since }) => {
    const count = runs === 1 ? '1 run' : `${String(runs)} runs`;
    return `${task_title ?? task_id} (${count} since ${since})`;
  });
  const most = named.length === 0 ? '' : `, most by ${named.join(', ')}`;
  // A direct call has no task. The audit lists it.
  return calls === 0 ? most : `${most}, ${String(calls)} by direct calls of tools`;
}

const MAX_NAMED_HOLDERS = 3;

function namesOf(states: readonly ProjectionState[]): string {
  return states.map((state) => state.name).join(', ');
}
