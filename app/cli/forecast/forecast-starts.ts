import type { Instant } from '../../../domain/clock.ts';
import type { FireCount, Schedule } from '../../../domain/schedule/schedule.ts';
import { longestJitter } from '../../../domain/tasks/jitter.ts';

/** By how much runs start after their fires. */
export interface Shift {
  /** Of the task, in seconds. */
  readonly jitterSeconds: number;
  /** What of it is this task's, in milliseconds, where the next fire is far enough. */
  readonly milliseconds: number;
}

/**
 * When the runs of a schedule start. Each starts before the next fire is due, so that of the fires up to an instant
 * only the last may have to be left out.
 */
export class Starts {
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
    const part = longestJitter(jitterSeconds, fire, next) / (jitterSeconds * 1000);
    return fire + Math.floor(milliseconds * part);
  }

  /** Up to when the runs of the fires at or before an instant start. */
  before(fires: Instant): Instant {
    const late = this.#lateFire(fires);
    return late === null ? fires : this.of(late);
  }

  /** The first start strictly after an instant. */
  next(after: Instant): { readonly at: Instant } | null {
    const late = this.#lateFire(after);
    const fire = late ?? this.#schedule.next(after)?.at ?? null;
    return fire === null ? null : { at: this.of(fire) };
  }

  /** How many starts are in (after, upTo], and the first and last of them. */
  countBetween(after: Instant, upTo: Instant): FireCount {
    // From before the fire whose start is still to come, up to before the one whose start comes later.
    const fires = (at: Instant): Instant => (this.#lateFire(at) ?? at + 1) - 1;
    const { count, first, last } = this.#schedule.countBetween(fires(after), fires(upTo));
    if (first === null || last === null) return { count: 0, first: null, last: null };
    return { count, first: this.of(first), last: this.of(last) };
  }

  /** The fire at or before an instant whose run starts after it. */
  #lateFire(at: Instant): Instant | null {
    if (this.#shift.milliseconds === 0) return null;
    const fire = this.#schedule.previous(at + 1)?.at ?? null;
    return fire === null || this.of(fire) <= at ? null : fire;
  }
}
