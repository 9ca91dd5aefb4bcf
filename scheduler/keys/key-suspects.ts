import { fromIso, type Clock } from '../../domain/clock.ts';
import type { KeyPlace } from '../../domain/keys/key-judgement.ts';
import type { KeyState } from '../../domain/keys/key.ts';
import { placesOf } from '../../domain/runs/run-request.ts';
import type { Membership } from '../processes/membership.ts';
import type { RunQueue } from '../runs/run-queue.ts';

/** Most runs whose streams one look at a key reads; those left are seen by the next. */
const MOST_SUSPECTS = 20;

/** Says of whom in a key it is not known here that they need what they have: their streams tell more. */
export class KeySuspects {
  private readonly queue: RunQueue;
  private readonly membership: Membership;
  private readonly clock: Clock;
  private first = 0;

  constructor(options: {
    readonly queue: RunQueue;
    readonly membership: Membership;
    readonly clock: Clock;
  }) {
    this.queue = options.queue;
    this.membership = options.membership;
    this.clock = options.clock;
  }

  /**
   * The places of suspects, at most {@link MOST_SUSPECTS}: of more, the next ones with each call.
   *
   * @param except a run that is none
   */
  of(state: KeyState, except?: string): readonly KeyPlace[] {
    const now = this.clock.now();
    const waiters = new Set(state.waiters.map(({ run_id }) => run_id));
    const all = placesOf(state).filter(({ run_id, since }) => {
      if (run_id === except) return false;
      const known = this.queue.get(run_id);
      if (known === undefined) return true;
      if (state.kind !== 'concurrency' || known.state === 'running') return false;
      if (waiters.has(run_id)) return known.runAt > now;
      // One that was just given its slot begins at any moment: `judge` leaves it that for a lease.
      return known.state !== 'queued' || now - fromIso(since) > this.membership.lease;
    });
    if (all.length <= MOST_SUSPECTS) return all;
    this.first = (this.first + MOST_SUSPECTS) % all.length;
    return [...all, ...all].slice(this.first, this.first + MOST_SUSPECTS);
  }
}
