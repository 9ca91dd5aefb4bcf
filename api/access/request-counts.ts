import type { IncrementResponse, Store } from 'express-rate-limit';
import type { Clock, Instant } from '../../domain/clock.ts';
import type { Log } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';

/** How often, at most, what was counted here is added to what all processes have counted. Milliseconds. */
const SETTLE_EVERY = 1000;

/** Callers whose counts are added at one time, and in one round; the others' turn is the next round. */
const SIDE_BY_SIDE = 20;
const IN_A_ROUND = 1000;

/** Callers of one kind that are remembered. Whoever was there longest is forgotten, and begins anew. */
const MOST_CALLERS = 50_000;

interface Count {
  /** The window's end. */
  ends: Instant;
  reset: Date;
  /** What the processes together have told the coordination store. */
  shared: number;
  /** What this process has counted and not yet told. */
  own: number;
}

/**
 * How many requests each caller has made in the present window, over all processes: counted here, and settled
 * with the others once a second in the background, so that no request waits for the coordination store. While
 * that is away, each process counts for itself.
 */
export class RequestCounts implements Store {
  readonly localKeys = false;
  readonly #coordination: Coordination;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #window: number;
  /** By kind of caller: many addresses push no agent out. In the order in which their windows began. */
  readonly #counts = new Map<string, Map<string, Count>>();
  readonly #unsettled = new Map<string, Count>();
  /** Where windows end, as the coordination store's clock has it: a rest of division by the window. */
  #phase = 0;
  #armed = false;
  /** When it was settled last, by the clock's `steady`. */
  #settledAt = Number.NEGATIVE_INFINITY;
  #alone = false;

  /** @param options.window milliseconds */
  constructor(options: {
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly log: Log;
    readonly window: number;
  }) {
    this.#coordination = options.coordination;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#window = options.window;
  }

  /** Counts one request. @param key `<kind> <caller>` */
  increment(key: string): IncrementResponse {
    const now = this.#clock.now();
    const count = this.#countOf(key, now);
    count.own += 1;
    this.#unsettled.set(key, count);
    this.#arm();
    return { totalHits: count.shared + count.own, resetTime: count.reset };
  }

  /** Takes one request back. */
  decrement(key: string): void {
    const count = this.#known(key);
    if (count === undefined) return;
    count.own -= 1;
    this.#unsettled.set(key, count);
    this.#arm();
  }

  /** Forgets, in this process, what a caller has made of its window. */
  resetKey(key: string): void {
    this.#counts.get(kindOf(key))?.delete(key);
    this.#unsettled.delete(key);
  }

  #known(key: string): Count | undefined {
    return this.#counts.get(kindOf(key))?.get(key);
  }

  #countOf(key: string, now: Instant): Count {
    const kind = kindOf(key);
    const counts = this.#counts.get(kind) ?? new Map<string, Count>();
    this.#counts.set(kind, counts);
    const known = counts.get(key);
    // An end that lies further ahead than a window: the clock was put back.
    if (known && known.ends > now && known.ends - now <= 2 * this.#window) return known;
    const ends = this.#endOf(now);
    const count = { ends, reset: new Date(ends), shared: 0, own: 0 };
    counts.delete(key);
    this.#forgetOldest(counts, now);
    counts.set(key, count);
    return count;
  }

  /** Two for each new one, where their windows are over, so that all that is over goes in time. */
  #forgetOldest(counts: Map<string, Count>, now: Instant): void {
    let most = 2;
    for (const [key, { ends }] of counts) {
      if (most === 0 || (ends > now && counts.size < MOST_CALLERS)) return;
      counts.delete(key);
      this.#unsettled.delete(key);
      most -= 1;
    }
  }

  #endOf(now: Instant): Instant {
    const into = (now - this.#phase) % this.#window;
    return now - into + this.#window;
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    // After a pause at once: what the others have counted meanwhile is known with the next request.
    const left = Math.max(0, this.#settledAt + SETTLE_EVERY - this.#clock.steady());
    this.#clock.after(left, () => void this.#settle(), { background: true });
  }

  /** Never rejects: what can't be told now is told later. */
  async #settle(): Promise<void> {
    const round = [...this.#unsettled].slice(0, IN_A_ROUND);
    for (const [key] of round) this.#unsettled.delete(key);
    let failed = false;
    this.#settledAt = this.#clock.steady();
    for (let from = 0; from < round.length && !failed; from += SIDE_BY_SIDE) {
      const some = round.slice(from, from + SIDE_BY_SIDE);
      const settled = await Promise.all(some.map(([key, count]) => this.#tell(key, count)));
      failed = settled.includes(false);
      if (!failed) continue;
      for (const [key, count] of round.slice(from)) {
        if (this.#known(key) === count) this.#unsettled.set(key, count);
      }
    }
    if (round.length > 0) this.#noteAlone(failed);
    this.#armed = false;
    if (this.#unsettled.size > 0) this.#arm();
  }

  /** @returns whether the coordination store has answered */
  async #tell(key: string, count: Count): Promise<boolean> {
    const { own } = count;
    if (count.ends <= this.#clock.now()) return true;
    try {
      const { sum, remaining } = await this.#coordination.count(
        `requests ${key}`,
        own,
        this.#window,
      );
      // Its window counts, and not ours: their clocks may differ.
      const ends = Math.round(this.#clock.now() + remaining);
      this.#phase = ends % this.#window;
      count.own -= own;
      count.shared = sum;
      // Moments on the way make it a little different each time.
      if (Math.abs(ends - count.ends) > SETTLE_EVERY) {
        count.ends = ends;
        count.reset = new Date(ends);
      }
      return true;
    } catch (error) {
      if (!this.#alone) {
        this.#log.warn('requests are counted by this process alone', { error });
      }
      this.#alone = true;
      return false;
    }
  }

  #noteAlone(failed: boolean): void {
    if (failed || !this.#alone) return;
    this.#alone = false;
    this.#log.info('requests are counted over all processes again');
  }
}

function kindOf(key: string): string {
  return key.slice(0, key.indexOf(' '));
}
