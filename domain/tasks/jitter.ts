import type { Instant } from '../clock.ts';
import { nameBasedId } from '../ids.ts';
import { LAST_INSTANT } from '../schedule/civil.ts';
import type { Timetable } from './fires.ts';
import type { FiringDefinition } from './rhythm.ts';

/** When the run of a fire starts: at the fire, or later by the task's jitter. */
export function startOf(
  taskId: string,
  { jitter_seconds }: Pick<FiringDefinition, 'jitter_seconds'>,
  fire: Instant,
  timetable: Pick<Timetable, 'next'>,
): Instant {
  // What follows is looked for only where it matters.
  if (jitter_seconds === 0) return fire;
  const next = timetable.next(fire)?.at ?? null;
  return fire + jitterOf(taskId, longestJitter(jitter_seconds, fire, next));
}

/**
 * By how much runs may start after their fire: by the task's jitter, but before the next fire is due. So they start in
 * the order of their fires, and don't pile up. Milliseconds, of which the last is not reached.
 *
 * @param next the fire after it; null for none
 */
export function longestJitter(seconds: number, fire: Instant, next: Instant | null): number {
  return Math.min(seconds * 1000, (next ?? LAST_INSTANT + 1) - fire);
}

/** A part of the longest jitter: the same part for all fires of a task, spread evenly over the tasks. Milliseconds. */
export function jitterOf(taskId: string, longest: number): number {
  if (longest <= 0) return 0;
  const share = Number.parseInt(nameBasedId('jitter', taskId).slice(0, 8), 16) / 0x1_0000_0000;
  return Math.floor(share * longest);
}
