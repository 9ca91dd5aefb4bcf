import { fromIso, type Instant } from '../../domain/clock.ts';
import type { KeyPlace } from '../../domain/keys/stale-holders.ts';
import type { KeyName, KeyState } from '../../domain/keys/key.ts';
import { releasesKey } from '../../domain/runs/run-waits.ts';
import { placesOf } from '../../domain/runs/run-request.ts';
import { streamOf } from './key-names.ts';
import type { SemaphoreParts } from './semaphore-parts.ts';

/** Time between rechecks of the keys that local runs wait for, and of the same busy key. Milliseconds. */
export const RECHECK_INTERVAL = 3000;

/** Runs whose streams one recheck of a key reads; the next recheck reads others. */
const MAX_CANDIDATES = 20;

/** Decides when a busy key is rechecked for stale holders, and which runs are worth reading. */
export class KeyRecheck {
  readonly #parts: Pick<SemaphoreParts, 'queue' | 'membership' | 'clock'>;
  readonly #checkedAt = new Map<string, Instant>();
  #offset = 0;

  constructor(parts: Pick<SemaphoreParts, 'queue' | 'membership' | 'clock'>) {
    this.#parts = parts;
  }

  /** Whether a key may be rechecked now, regardless of how many runs want it. */
  isDue(name: KeyName): boolean {
    return !this.#isRecent(this.#checkedAt.get(streamOf(name)) ?? Number.NEGATIVE_INFINITY);
  }

  /** Like {@link isDue}. If the recheck is due, it then counts as begun. */
  begin(name: KeyName): boolean {
    if (!this.isDue(name)) return false;
    this.#checkedAt.set(streamOf(name), this.#parts.clock.now());
    return true;
  }

  forgetOld(): void {
    for (const [stream, at] of this.#checkedAt) {
      if (!this.#isRecent(at)) this.#checkedAt.delete(stream);
    }
  }

  /**
   * The places of runs that this process does not know to need them, at most {@link MAX_CANDIDATES}. If there are more,
   * each call returns the next ones.
   *
   * @param except a run to leave out
   */
  candidates(state: KeyState, except?: string): readonly KeyPlace[] {
    const { queue, membership, clock } = this.#parts;
    const now = clock.now();
    const waiters = new Set(state.waiters.map(({ run_id }) => run_id));
    const all = placesOf(state).filter(({ run_id, since }) => {
      if (run_id === except) return false;
      const known = queue.get(run_id);
      if (known === undefined) return true;
      if (state.kind !== 'concurrency' || known.state === 'running') return false;
      if (known.state === 'waiting') return releasesKey(known.waits);
      if (waiters.has(run_id)) return known.runAt > now;
      // A run that just got its slot has the length of a lease to start.
      return known.state !== 'queued' || now - fromIso(since) > membership.lease;
    });
    if (all.length <= MAX_CANDIDATES) return all;
    this.#offset = (this.#offset + MAX_CANDIDATES) % all.length;
    return [...all, ...all].slice(this.#offset, this.#offset + MAX_CANDIDATES);
  }

  /** Compared in either direction, because the clock may have been set back. */
  #isRecent(at: Instant): boolean {
    return Math.abs(this.#parts.clock.now() - at) < RECHECK_INTERVAL;
  }
}
