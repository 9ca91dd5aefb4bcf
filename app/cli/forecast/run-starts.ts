import type { Instant } from '../../../domain/clock.ts';
import type { FireCount, Schedule } from '../../../domain/schedule/schedule.ts';
import { maxJitter } from '../../../domain/tasks/jitter.ts';

/** How much later than its fire a run starts. */
export interface Shift {
  /** The task's `jitter_seconds`. */
  readonly jitterSeconds: number;
  /** This task's share of it in milliseconds, if the next fire is far enough. */
  readonly milliseconds: number;
}

/** When the runs of a schedule start. Each starts before the next fire, so at most one fire before an instant is late. */
export class RunStarts {
  readonly #schedule: Schedule;
  readonly #shift: Shift;

  constructor(schedule: Schedule, shift: Shift) {
    this.#schedule = schedule;
    this.#shift = shift;
  }

  /** When the run of a fire starts. */
  of(fire: Instant): Instant {
    const { jitterSeconds, milliseconds } = this.#shift;
    if (milliseconds === 0) return fire;
    const next = this.#schedule.next(fire)?.at ?? null;
    const share = maxJitter(jitterSeconds, fire, next) / (jitterSeconds * 1000);
    return fire + Math.floor(milliseconds * share);
  }

  /** Until when the runs of the fires at or before an instant start. */
  lastFor(fires: Instant): Instant {
    const late = this.#lateFire(fires);
    return late === null ? fires : this.of(late);
  }

  /** How many runs start in (after, upTo], and the first and last start. */
  countBetween(after: Instant, upTo: Instant): FireCount {
    const lastStarted = (at: Instant): Instant => (this.#lateFire(at) ?? at + 1) - 1;
    const { count, first, last } = this.#schedule.countBetween(
      lastStarted(after),
      lastStarted(upTo),
    );
    if (first === null || last === null) return { count: 0, first: null, last: null };
    return { count, first: this.of(first), last: this.of(last) };
  }

  /**
   * Counts the starts in (after, upTo] by periods. Sparse schedules are walked fire by fire, dense ones counted period by
   * period, so the work grows with the periods and not with the fires.
   *
   * @param begin start of the first period, at or before the first start
   * @param period in milliseconds
   */
  countByPeriod(
    { after, upTo, begin, period }: Readonly<Record<'after' | 'upTo' | 'begin' | 'period', number>>,
    add: (index: number, starts: number) => void,
  ): void {
    if (upTo <= after) return;
    const { count, first, last } = this.countBetween(after, upTo);
    if (first === null || last === null) return;
    const indexOf = (at: Instant): number => Math.floor((at - begin) / period);
    const [from, to] = [indexOf(first), indexOf(last)];
    if (from === to) {
      add(from, count);
    } else if (count <= to - from + 1) {
      for (let at: Instant | null = first; at !== null && at <= last; at = this.#next(at)) {
        add(indexOf(at), 1);
      }
    } else {
      for (let index = from; index <= to; index += 1) {
        const start = begin + index * period;
        const end = Math.min(start + period - 1, upTo);
        const { count: starts } = this.countBetween(Math.max(start - 1, after), end);
        if (starts > 0) add(index, starts);
      }
    }
  }

  /** The first start after an instant. */
  #next(after: Instant): Instant | null {
    const fire = this.#lateFire(after) ?? this.#schedule.next(after)?.at ?? null;
    return fire === null ? null : this.of(fire);
  }

  /** The fire at or before an instant whose run starts after it. */
  #lateFire(at: Instant): Instant | null {
    if (this.#shift.milliseconds === 0) return null;
    const fire = this.#schedule.previous(at + 1)?.at ?? null;
    return fire === null || this.of(fire) <= at ? null : fire;
  }
}
