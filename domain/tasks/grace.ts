import type { Instant } from '../clock.ts';
import type { TaskDefinition } from './task-definition.ts';

/**
 * A fire that is less late than this is in time for any grace, because no fire is decided exactly on time.
 * Milliseconds.
 */
const ALWAYS_IN_TIME = 1000;

type GraceSetting = Pick<TaskDefinition, 'misfire_grace_seconds'>;

/** How late a fire may be and still run as if in time. Milliseconds. */
export function graceOf({ misfire_grace_seconds }: GraceSetting): number {
  return Math.max(misfire_grace_seconds * 1000, ALWAYS_IN_TIME - 1);
}

/** The latest nominal time that is beyond its grace. */
export function lateUpTo(task: GraceSetting, now: Instant): Instant {
  return now - graceOf(task) - 1;
}
