import type { Instant } from '../clock.ts';
import { nameBasedId } from '../ids.ts';
import { LAST_INSTANT } from '../schedule/civil.ts';
import type { TaskDefinition } from './task-definition.ts';
import type { Timetable } from './task-schedule.ts';

/** The start of a fire's run: at the fire, or later by the task's jitter. */
export function startWithJitter(
  taskId: string,
  { jitter_seconds }: Pick<TaskDefinition, 'jitter_seconds'>,
  fire: Instant,
  timetable: Pick<Timetable, 'next'>,
): Instant {
  if (jitter_seconds === 0) return fire;
  const next = timetable.next(fire)?.at ?? null;
  return fire + jitterOf(taskId, maxJitter(jitter_seconds, fire, next));
}

/**
 * The upper bound (exclusive) of a run's delay, in milliseconds. Runs start before the next fire is due, so they start
 * in the order of their fires and do not accumulate.
 * @param next the next fire; null for none
 */
export function maxJitter(seconds: number, fire: Instant, next: Instant | null): number {
  return Math.min(seconds * 1000, (next ?? LAST_INSTANT + 1) - fire);
}

/**
 * A task's share of the longest jitter. It is the same for all fires of a task, and is spread evenly over tasks.
 * Milliseconds.
 */
export function jitterOf(taskId: string, longest: number): number {
  if (longest <= 0) return 0;
  const share = Number.parseInt(nameBasedId('jitter', taskId).slice(0, 8), 16) / 0x1_0000_0000;
  return Math.floor(share * longest);
}
