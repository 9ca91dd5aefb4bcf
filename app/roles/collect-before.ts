import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock, Instant } from '../../domain/clock.ts';
import type { DueEntry } from '../../scheduler/fires/due-index.ts';

/** So many tasks that are due within so many milliseconds are a burst. */
const MANY = 100;
const WITHIN = 1_000;
/** So long before the first of them. Milliseconds. */
const BEFORE = 250;

/** Tasks that are due soon. */
type Due = readonly Pick<DueEntry, 'dueAt'>[];

/**
 * Has young objects collected shortly before many tasks are due at once. What was made ready for them is young and in
 * use, and copying it holds up the event loop for 20 to 40 milliseconds: those are the lateness of all that start behind
 * it where V8 does so in their midst, as it does in every third or fourth such instant by itself.
 *
 * @returns to be told which tasks are due in the next seconds
 */
export function collectingBefore(
  clock: Clock,
  collector: () => () => void = youngCollector,
): (due: Due) => void {
  let collect: (() => void) | undefined;
  return (due) => {
    const first = burstIn(due);
    if (first === null) return;
    collect ??= collector();
    clock.at(first - BEFORE, collect, { background: true });
  };
}

/** When the first burst among them begins; null where there is none. */
function burstIn(due: Due): Instant | null {
  if (due.length < MANY) return null;
  const times = due.flatMap(({ dueAt }) => dueAt ?? []).sort((a, b) => a - b);
  const first = times.find((at, index) => (times[index + MANY - 1] ?? Infinity) - at < WITHIN);
  return first ?? null;
}

/**
 * Collects V8's young generation, and does nothing where V8 has no way to be told to. It has one for its own tests,
 * which no context sees but the one that is made for it here.
 */
export function youngCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  return () => {
    if (typeof collect === 'function') Reflect.apply(collect, undefined, [{ type: 'minor' }]);
  };
}
