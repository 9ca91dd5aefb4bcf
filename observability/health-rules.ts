import type { HealthCheck } from './health.ts';

/** What is known of one projection. */
export interface ProjectionState {
  readonly name: string;
  /** How far behind the end of the log, in seconds; 0 when it has caught up. */
  readonly lagSeconds: number;
  /** Whether its checkpoint has moved since it was last looked at. */
  readonly progressed: boolean;
  /** How many documents are parked on an event that could not be folded. */
  readonly parked: number;
}

/**
 * A projection that lags is unhealthy only when it also makes no progress: one that is catching up after an
 * outage, or being filled, needs time and not a restart. Parked documents and lag alone degrade.
 */
export function projectionsCheck(
  states: readonly ProjectionState[],
  limitSeconds: number,
): HealthCheck {
  const late = states.filter((state) => state.lagSeconds > limitSeconds);
  const stuck = late.filter((state) => !state.progressed);
  const parked = states.filter((state) => state.parked > 0);
  const name = 'projections';
  if (stuck.length > 0) {
    const message = `${namesOf(stuck)}: behind by more than ${String(limitSeconds)} s, and not moving`;
    return { name, status: 'unhealthy', message };
  }
  if (late.length > 0) {
    return { name, status: 'degraded', message: `${namesOf(late)}: catching up` };
  }
  if (parked.length > 0) {
    return { name, status: 'degraded', message: `${namesOf(parked)}: with parked documents` };
  }
  return { name, status: 'healthy', message: 'caught up' };
}

/** What is known of the scheduler. */
export interface SchedulerState {
  /** Whether some process holds the scheduler's lease. */
  readonly led: boolean;
  /** Active tasks whose time has passed, beyond the grace, without a fire or a recorded reason. */
  readonly overdueTasks: number;
}

/** A task that is overdue with no reason recorded is what the service must never let happen. */
export function schedulerCheck({ led, overdueTasks }: SchedulerState): HealthCheck {
  const name = 'scheduler';
  if (overdueTasks > 0) {
    const message = `${String(overdueTasks)} tasks are overdue with no reason recorded`;
    return { name, status: 'unhealthy', message };
  }
  return led
    ? { name, status: 'healthy', message: 'at work' }
    : { name, status: 'degraded', message: 'no process is scheduling' };
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
