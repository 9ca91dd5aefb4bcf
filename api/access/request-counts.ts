import type { IncrementResponse, Store } from 'express-rate-limit';
import type { Clock, Instant } from '../../domain/clock.ts';
import type { Failures } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';

/** The message that reports a failure. */
const ALONE = 'counting requests in this process alone';

/** How often counts are shared with the other processes. Milliseconds. */
const SHARE_INTERVAL = 1000;

/** Callers whose counts are shared concurrently, and in one round. */
const MAX_CONCURRENT = 20;
const MAX_PER_ROUND = 1000;

/** How many callers of one kind are remembered. The oldest are forgotten. */
const MAX_CALLERS = 50_000;

interface Count {
  /** The window's end. */
  ends: Instant;
  reset: Date;
  /** The sum of all processes in the coordination store. */
  shared: number;
  /** Requests of this process that are not yet shared. */
  own: number;
}

/**
 * Counts each caller's requests in the present window, over all processes. Counts are shared once a second in the
 * background, so that no request waits for the coordination store. While that is unavailable, each process counts alone.
 */
export class RequestCounts implements Store {
  readonly localKeys = false;
  readonly #coordination: Coordination;
  readonly #clock: Clock;
  readonly #failures: Failures;
  readonly #window: number;
  /** By kind of caller, so that many addresses displace no agent. Ordered by the beginning of their windows. */
  readonly #counts = new Map<string, Map<string, Count>>();
  readonly #unshared = new Map<string, Count>();
  /** The remainder, modulo the window, of the times at which windows end in the coordination store. */
  #phase = 0;
  #isScheduled = false;
  /** A time of the clock's `steady`. */
  #sharedAt = Number.NEGATIVE_INFINITY;
  #isAlone = false;

  /** @param options.window milliseconds */
  constructor(options: {
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly failures: Failures;
    readonly window: number;
  }) {
    this.#coordination = options.coordination;
    this.#clock = options.clock;
    this.#failures = options.failures;
    this.#window = options.window;
  }

  /** Counts one request. @param key `<kind> <caller>` */
  increment(key: string): IncrementResponse {
    const now = this.#clock.now();
    const count = this.#countOf(key, now);
    count.own += 1;
    this.#unshared.set(key, count);
    this.#schedule();
    return { totalHits: count.shared + count.own, resetTime: count.reset };
  }

  /** Uncounts one request. */
  decrement(key: string): void {
    const count = this.#known(key);
    if (count === undefined) return;
    count.own -= 1;
    this.#unshared.set(key, count);
    this.#schedule();
  }

  /** Forgets a caller's window in this process. */
  resetKey(key: string): void {
    this.#counts.get(kindOf(key))?.delete(key);
    this.#unshared.delete(key);
  }

  #known(key: string): Count | undefined {
    return this.#counts.get(kindOf(key))?.get(key);
  }

  #countOf(key: string, now: Instant): Count {
    const kind = kindOf(key);
    const counts = this.#counts.get(kind) ?? new Map<string, Count>();
    this.#counts.set(kind, counts);
    const known = counts.get(key);
    // If the end is too far ahead, the clock was set back.
    if (known && known.ends > now && known.ends - now <= 2 * this.#window) return known;
    const ends = this.#endOf(now);
    const count = { ends, reset: new Date(ends), shared: 0, own: 0 };
    counts.delete(key);
    this.#forgetOldest(counts, now);
    counts.set(key, count);
    return count;
  }

  /** Forgets up to two expired counts for each new one. */
  #forgetOldest(counts: Map<string, Count>, now: Instant): void {
    let left = 2;
    for (const [key, { ends }] of counts) {
      if (left === 0 || (ends > now && counts.size < MAX_CALLERS)) return;
      left -= 1;
      counts.delete(key);
      this.#unshared.delete(key);
    }
  }

  #endOf(now: Instant): Instant {
    const into = (now - this.#phase) % this.#window;
    return now - into + this.#window;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Shared at once after a pause, to learn the counts of other processes in the meantime.
    const left = Math.max(0, this.#sharedAt + SHARE_INTERVAL - this.#clock.steady());
    this.#clock.after(left, () => void this.#shareRound(), { background: true });
  }

  /** Never rejects: counts that cannot be shared now are shared later. */
  async #shareRound(): Promise<void> {
    const round = [...this.#unshared].slice(0, MAX_PER_ROUND);
    for (const [key] of round) this.#unshared.delete(key);
    let failed = false;
    this.#sharedAt = this.#clock.steady();
    for (let from = 0; from < round.length && !failed; from += MAX_CONCURRENT) {
      const some = round.slice(from, from + MAX_CONCURRENT);
      const shared = await Promise.all(some.map(([key, count]) => this.#share(key, count)));
      failed = shared.includes(false);
      if (!failed) continue;
      for (const [key, count] of round.slice(from)) {
        if (this.#known(key) === count) this.#unshared.set(key, count);
      }
    }
    if (round.length > 0 && !failed && this.#isAlone) {
      this.#isAlone = false;
      this.#failures.worked(ALONE);
    }
    this.#isScheduled = false;
    if (this.#unshared.size > 0) this.#schedule();
  }

  /** @returns whether the coordination store has answered */
  async #share(key: string, count: Count): Promise<boolean> {
    const { own } = count;
    if (count.ends <= this.#clock.now()) return true;
    try {
      const name = `requests ${key}`;
      const { sum, remaining } = await this.#coordination.count(name, own, this.#window);
      // The store's window applies, because clocks may differ.
      const ends = Math.round(this.#clock.now() + remaining);
      this.#phase = ends % this.#window;
      count.own -= own;
      count.shared = sum;
      // Small differences come from latency.
      if (Math.abs(ends - count.ends) > SHARE_INTERVAL) {
        count.ends = ends;
        count.reset = new Date(ends);
      }
      return true;
    } catch (error) {
      this.#failures.failed(ALONE, error);
      this.#isAlone = true;
      return false;
    }
  }
}

function kindOf(key: string): string {
  return key.slice(0, key.indexOf(' '));
}
