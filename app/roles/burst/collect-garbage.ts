import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock, Instant } from '../../../domain/clock.ts';
import type { DueEntry } from '../../../scheduler/fires/due-index.ts';

/** A burst: this many tasks are due within this many milliseconds. */
const BURST_TASKS = 100;
const BURST_WINDOW = 1_000;
/** How long before the first task of a burst garbage is collected. Milliseconds. */
const LEAD_TIME = 250;

type Due = readonly Pick<DueEntry, 'dueAt'>[];

/**
 * Collects V8's young generation shortly before a burst. The objects prepared for it are young and in use; copying them
 * blocks the event loop for 20 to 40 ms. Left to itself, V8 does that during every third or fourth burst.
 *
 * @returns a function to call with the tasks that are due in the next seconds
 */
export function collectGarbageBefore(
  clock: Clock,
  collector: () => () => void = youngCollector,
): (due: Due) => void {
  let collect: (() => void) | undefined;
  return (due) => {
    const first = burstIn(due);
    if (first === null) return;
    collect ??= collector();
    clock.at(first - LEAD_TIME, collect, { background: true });
  };
}

/** When the first burst begins; null if there is none. */
function burstIn(due: Due): Instant | null {
  if (due.length < BURST_TASKS) return null;
  const times = due.flatMap(({ dueAt }) => dueAt ?? []).sort((a, b) => a - b);
  const lastOf = (index: number): Instant => times[index + BURST_TASKS - 1] ?? Infinity;
  return times.find((at, index) => lastOf(index) - at < BURST_WINDOW) ?? null;
}

/** V8's `gc` for its own tests, visible only in a context that is created for it. Does nothing if V8 has none. */
export function youngCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  return () => {
    if (typeof collect === 'function') Reflect.apply(collect, undefined, [{ type: 'minor' }]);
  };
}
