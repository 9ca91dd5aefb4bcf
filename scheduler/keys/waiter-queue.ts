import type { Instant } from '../../domain/clock.ts';
import type { KeyEvent } from '../../domain/events/catalogue.ts';
import { changeKey, type KeyChange } from '../../domain/keys/key-stream.ts';
import {
  MAX_WAITERS,
  admissibleWaiters,
  holdKey,
  stateAfter,
  type KeyClaim,
  type KeyDecision,
  type KeyName,
  type KeyState,
  type KeyWaiter,
} from '../../domain/keys/key.ts';
import { claimOf, streamOf } from './key-names.ts';
import { HOLD_BACK, type KeyWatch } from './key-watch.ts';
import type { PendingReleases } from './pending-releases.ts';
import { contextOf, type SemaphoreParts } from './semaphore-parts.ts';
import { mayStart } from '../runs/queued-run.ts';
import type { QueuedRun } from '../runs/queued-run.ts';

/** How often a worker that is not the preferred one hands a slot on before it leaves the slot to that worker. */
const MAX_LOCAL_HANDOFFS = 16;

/** Keys whose handoffs are counted; with more, counting restarts. */
const MAX_COUNTED_KEYS = 10_000;

/** A slot of a concurrency key that this process has taken for a run before the run asked for it. */
export interface Grant {
  readonly run: QueuedRun;
  readonly name: KeyName;
  readonly attempt: number;
  /** The revision of the run's stream when the slot was taken. */
  readonly revision: number;
  readonly at: Instant;
}

const noHold: KeyDecision = { outcome: 'waiting', events: [] };

/**
 * Decides for the runs that wait in this process: a release hands the slot to the next waiter and records new waiters
 * in one append. Otherwise each run would need an append and a worker's slot, and the key would be free in the meantime.
 */
export class WaiterQueue {
  readonly #parts: SemaphoreParts;
  readonly #watch: KeyWatch;
  readonly #pending: PendingReleases;
  /** The keys with a scheduled or running batch, with the runs that have arrived since. */
  readonly #arrived = new Map<string, Set<QueuedRun>>();
  /** The number of handoffs in this process, by stream, since the slot was last left to another worker. */
  readonly #handoffs = new Map<string, number>();

  constructor(parts: SemaphoreParts, watch: KeyWatch, pending: PendingReleases) {
    this.#parts = parts;
    this.#watch = watch;
    this.#pending = pending;
  }

  /**
   * Gives a slot that becomes free to the next waiter, if that run can start here and now.
   * @param released the release of the slot
   * @returns all events, and the grant, if any
   */
  handOn(name: KeyName, released: readonly KeyEvent[], now: Instant): KeyChange<Grant | null> {
    const [last] = released;
    if (last === undefined || name.kind !== 'concurrency') {
      return { events: released, answer: null };
    }
    const state = stateAfter(last);
    const [waiter] = admissibleWaiters(state);
    const next = waiter && this.#parts.queue.get(waiter.run_id);
    const canStart =
      waiter !== undefined &&
      next !== undefined &&
      !next.taken &&
      this.#watch.isWaitingFor(next.id, name) &&
      this.#parts.hasRoom(next) &&
      !this.#isLeftToOther(name, waiter);
    const claim = canStart ? this.#claimNow(next, name) : undefined;
    const { outcome, events } = claim ? holdKey(state, claim, now) : noHold;
    const queued = this.enqueue(events[0] === undefined ? state : stateAfter(events[0]), now);
    const answer =
      next && claim && outcome === 'held'
        ? { run: next, name, attempt: claim.attempt, revision: next.revision, at: now }
        : null;
    // The event of the new holder also names the runs that no longer hold the key.
    return { events: [...(outcome === 'held' ? events : released), ...queued], answer };
  }

  /**
   * Whether to leave a slot to the run's preferred worker. Done only now and then, because the key is free until that
   * worker takes it.
   */
  #isLeftToOther(name: KeyName, waiter: KeyWaiter): boolean {
    const stream = streamOf(name);
    if (this.#watch.isPreferredFor(name, waiter)) return false;
    const handoffs = (this.#handoffs.get(stream) ?? 0) + 1;
    if (this.#handoffs.size >= MAX_COUNTED_KEYS) this.#handoffs.clear();
    if (handoffs < MAX_LOCAL_HANDOFFS) this.#handoffs.set(stream, handoffs);
    else this.#handoffs.delete(stream);
    return handoffs >= MAX_LOCAL_HANDOFFS;
  }

  /**
   * Records runs that have just arrived and, if the queue is short, unrecorded ones. One event is enough, because each
   * carries all waiters. No run gets a slot here. A run that could start, or also needs other keys, is put back so that
   * it asks by itself.
   */
  enqueue(before: KeyState, now: Instant, arrived: readonly QueuedRun[] = []): readonly KeyEvent[] {
    const { queue } = this.#parts;
    let state = before;
    let last: KeyEvent | undefined;
    // Unrecorded runs go before those that arrived later.
    const older = this.#watch.unrecorded(before, arrived.length > 0 ? MAX_WAITERS : undefined);
    for (const run of new Set([...older, ...arrived])) {
      const claim = before.kind === 'concurrency' ? this.#claimNow(run, before) : undefined;
      const { outcome, events } = claim ? holdKey(state, claim, now) : noHold;
      if (claim === undefined || outcome === 'held') {
        queue.putBack(run, now);
        queue.notifyReady();
      }
      if (outcome === 'held') break;
      last = events[0] ?? last;
      if (events[0] !== undefined) state = stateAfter(events[0]);
    }
    return last === undefined ? [] : [last];
  }

  /**
   * Schedules {@link enqueue} in a batch: all runs that arrive during an append share the next one. Every worker knows
   * the same runs; the preferred worker for the key records them, and the others then have nothing left to do.
   *
   * @param arrived a run that has just arrived; null for unrecorded runs alone
   */
  schedule(name: KeyName, arrived: QueuedRun | null): void {
    const stream = streamOf(name);
    const scheduled = this.#arrived.get(stream);
    if (arrived !== null) scheduled?.add(arrived);
    if (scheduled !== undefined) return;
    this.#arrived.set(stream, new Set(arrived === null ? [] : [arrived]));
    const begin = (): void => this.#pending.track(this.#recordArrived(stream, name));
    // Runs in the next turn, with all runs that arrive in this turn.
    if (this.#watch.isPreferred(stream)) setImmediate(begin);
    else this.#parts.clock.after(HOLD_BACK, begin, { background: true });
  }

  async #recordArrived(stream: string, name: KeyName): Promise<void> {
    const { store, clock } = this.#parts;
    const peek = (): ReturnType<KeyWatch['peek']> => this.#watch.peek(name);
    do {
      const arrived = [...(this.#arrived.get(stream) ?? [])];
      this.#arrived.set(stream, new Set());
      // A decision to do nothing, based on outdated state, is harmless, because it only affects a
      // waiter's place.
      const known = peek()?.state;
      if (known && this.enqueue(known, clock.now(), arrived).length === 0) continue;
      await this.#pending.retry(name.key, name, async () => {
        const context = contextOf(this.#parts, name.key);
        const record = (state: KeyState): KeyChange<null> => {
          return { events: this.enqueue(state, context.now, arrived), answer: null };
        };
        this.#watch.note(name, await changeKey(store, name, context, record, peek));
      });
    } while ((this.#arrived.get(stream)?.size ?? 0) > 0);
    this.#arrived.delete(stream);
  }

  /**
   * The claim of a run that could start now; undefined for other runs, and if it is unknown whether the run could
   * start.
   */
  #claimNow(run: QueuedRun, name: KeyName): KeyClaim | undefined {
    const { tasks, clock } = this.#parts;
    if (run.ended || !mayStart(run) || run.cancelRequested) return undefined;
    if (run.runAt > clock.now()) return undefined;
    const task = tasks.peek(run.taskId, run.taskRevision);
    // A run of a paused task may have to wait: the worker decides when it takes the run.
    if (task === undefined || !tasks.isActive(run.taskId)) return undefined;
    return claimOf(run, task, name);
  }
}
