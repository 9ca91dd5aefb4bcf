import { toIso, type Instant } from '../../domain/clock.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { changeKey, prepareKeyChange } from '../../domain/keys/key-stream.ts';
import { releaseKey } from '../../domain/keys/key.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { keysOf } from './key-names.ts';
import type { KeyWatch } from './key-watch.ts';
import type { PendingReleases } from './pending-releases.ts';
import { contextOf, type SemaphoreParts } from './semaphore-parts.ts';
import type { Grant, WaiterQueue } from './waiter-queue.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { HandOver } from '../runs/run-work.ts';

/** A granted run must start in this process within this time, or it loses the slot again. Milliseconds. */
export const GRANT_LIFETIME = 1000;

const endTypes: ReadonlySet<string> = new Set(['RunSucceeded', 'RunFailed', 'RunCanceled']);

/**
 * Releases a concurrency key together with the end of its run: both appends go into one call of the log, and the key's
 * append is only tried if the end's succeeds. If that fails, the key is released after the end, as usual.
 *
 * A release takes the slot for the next waiter in the same append (a grant), so that the key is never free in between. A
 * process that reclaims an unused slot first appends to the run's stream. A granted run may therefore start without
 * asking again: its start expects the granted revision, and one of the two loses the race.
 */
export class KeyHandoff {
  readonly #parts: SemaphoreParts;
  readonly #watch: KeyWatch;
  readonly #waiters: WaiterQueue;
  readonly #pending: PendingReleases;
  readonly #grants = new Map<string, Grant>();
  readonly #handedOver = new WeakSet<QueuedRun>();

  constructor(
    parts: SemaphoreParts,
    watch: KeyWatch,
    waiters: WaiterQueue,
    pending: PendingReleases,
  ) {
    this.#parts = parts;
    this.#watch = watch;
    this.#waiters = waiters;
    this.#pending = pending;
  }

  /** @returns null if the key has to be released after the end */
  handOver(run: QueuedRun, task: LiveTask, end: RunEvent): HandOver | null {
    const { store, queue, clock } = this.#parts;
    const [name, second] = keysOf(task, run);
    if (name?.kind !== 'concurrency' || second !== undefined || !endTypes.has(end.type)) {
      return null;
    }
    const known = this.#watch.peek(name);
    if (known === undefined) return null;
    let grant: Grant | null = null;
    const context = contextOf(this.#parts, run.id);
    const change = prepareKeyChange(store, name, context, known, (state) => {
      const handed = this.#waiters.handOn(name, releaseKey(state, run.id), context.now);
      grant = handed.answer;
      return handed.events;
    });
    if (change === null) return null;
    return {
      append: change.append,
      done: ({ revision }) => {
        change.finish();
        this.#handedOver.add(run);
        this.#watch.stopWaiting(run.id);
        this.start(grant);
        this.#watch.note(name, { state: change.state, revision });
        this.#watch.wakeWaiters(name);
      },
      failed: () => {
        change.finish();
        // If only the response was lost, the run may hold the key, so it asks for it.
        if (grant !== null) queue.putBack(grant.run, clock.now());
        queue.notifyReady();
      },
    };
  }

  /** Whether a run's key was released with its end. */
  isHandedOver(run: QueuedRun): boolean {
    return this.#handedOver.has(run);
  }

  /**
   * Releases the slots of granted runs that will not start here. Otherwise, each slot would be held for the length of a
   * lease.
   */
  releaseGrants(): void {
    const unused = [...this.#grants.values()];
    this.#grants.clear();
    for (const { run, name, at } of unused) {
      const since = toIso(at);
      this.#pending.start(run.id, name, async () => {
        await changeKey(this.#parts.store, name, contextOf(this.#parts, run.id), (state) => {
          // A run that has asked for the slot again elsewhere holds the slot with a later time.
          const isSame = state.holders.some((own) => own.run_id === run.id && own.since === since);
          return { events: isSame ? releaseKey(state, run.id) : [], answer: null };
        });
      });
    }
  }

  /** Lets a granted run start. */
  start(grant: Grant | null): void {
    if (grant === null) return;
    const { queue, clock } = this.#parts;
    this.#grants.set(grant.run.id, grant);
    queue.putBack(grant.run, clock.now());
    queue.notifyReady();
  }

  /** Whether a run has an unused grant. */
  isGranted(runId: string): boolean {
    return this.#grants.has(runId);
  }

  /** Consumes a run's grant. @returns whether the run may start the attempt with it */
  useGrant(run: QueuedRun, attempt: number, now: Instant): boolean {
    const grant = this.#grants.get(run.id);
    if (grant === undefined) return false;
    this.#grants.delete(run.id);
    return !isExpired(grant, now) && grant.revision === run.revision && grant.attempt === attempt;
  }

  /** Removes and returns the expired grants. */
  takeExpired(now: Instant): readonly Grant[] {
    const expired = [...this.#grants.values()].filter((grant) => isExpired(grant, now));
    for (const { run } of expired) this.#grants.delete(run.id);
    return expired;
  }
}

const isExpired = ({ at }: Grant, now: Instant): boolean => Math.abs(now - at) >= GRANT_LIFETIME;
