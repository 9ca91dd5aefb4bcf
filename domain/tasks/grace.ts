import type { Instant } from '../clock.ts';
import type { FiringDefinition } from './rhythm.ts';

/** No fire is decided at its very time: one that is less late than this is in time, whatever the grace. Milliseconds. */
const ALWAYS_IN_TIME = 1000;

/** What says how late a fire may be. */
type Patience = Pick<FiringDefinition, 'misfire_grace_seconds'>;

/** By how much a fire may be late at the most and runs as if in time. Milliseconds. */
export function graceOf({ misfire_grace_seconds }: Patience): number {
  return Math.max(misfire_grace_seconds * 1000, ALWAYS_IN_TIME - 1);
}

/** Up to which time fires are later than their grace. */
export function tooLateUpTo(task: Patience, now: Instant): Instant {
  return now - graceOf(task) - 1;
}
