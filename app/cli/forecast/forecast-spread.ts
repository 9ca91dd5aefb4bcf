import type { Instant } from '../../../domain/clock.ts';
import type { Starts } from './forecast-starts.ts';

/** Which fires to spread over which stretches. */
export interface Spreading {
  readonly schedule: Pick<Starts, 'next' | 'countBetween'>;
  /** Fires after this, */
  readonly after: Instant;
  /** up to and with this. */
  readonly upTo: Instant;
  /** Where the first stretch begins; not after the first fire. */
  readonly begin: Instant;
  /** How long a stretch is, in milliseconds. */
  readonly unit: number;
}

/**
 * Says of each stretch that has fires how many. Sparse rules are gone through fire by fire, dense ones are counted
 * stretch by stretch: the work goes with the number of stretches, not with that of fires.
 */
export function spread(
  { schedule, after, upTo, begin, unit }: Spreading,
  add: (index: number, fires: number) => void,
): void {
  if (upTo <= after) return;
  const { count, first, last } = schedule.countBetween(after, upTo);
  if (first === null || last === null) return;
  const indexOf = (at: Instant): number => Math.floor((at - begin) / unit);
  const from = indexOf(first);
  const to = indexOf(last);
  if (from === to) {
    add(from, count);
  } else if (count <= to - from + 1) {
    for (let at: Instant | null = first; at !== null && at <= last;) {
      add(indexOf(at), 1);
      at = schedule.next(at)?.at ?? null;
    }
  } else {
    for (let index = from; index <= to; index += 1) {
      const start = begin + index * unit;
      const within = schedule.countBetween(
        Math.max(start - 1, after),
        Math.min(start + unit - 1, upTo),
      );
      if (within.count > 0) add(index, within.count);
    }
  }
}
