import type { RunEvent } from '../../domain/events/catalogue.ts';
import { StaleHolderCheck, releaseStale, type KeyPlace } from '../../domain/keys/stale-holders.ts';
import { changeKey, type KeyChanged, type KeyContext } from '../../domain/keys/key-stream.ts';
import {
  holdKey,
  releaseAll,
  releaseKey,
  releaseWaiter,
  type KeyClaim,
  type KeyDecision,
  type KeyName,
  type KeyState,
} from '../../domain/keys/key.ts';
import { releasesKey } from '../../domain/runs/run-waits.ts';
import { cancelRunsAhead, placesOf } from '../../domain/runs/run-request.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { GRANT_LIFETIME, KeyHandoff } from './key-handoff.ts';
import { affinityOf, claimOf, isKeyed, keysOf } from './key-names.ts';
import { KeyRecheck, RECHECK_INTERVAL } from './key-recheck.ts';
import { KeyWatch } from './key-watch.ts';
import { PendingReleases } from './pending-releases.ts';
import { contextOf, type SemaphoreParts } from './semaphore-parts.ts';
import { WaiterQueue } from './waiter-queue.ts';
import type { Admission, HandOver } from '../runs/run-work.ts';
import type { QueuedRun } from '../runs/queued-run.ts';

/** The message that reports a failure. */
const FAILURE = 'could not recheck the keys in use; retrying';

/** Every n-th recheck covers all keys in use for which this worker is preferred. */
const FULL_RECHECK_EVERY = 10;

/** A waiting run is woken when its turn comes. This limits its wait if a wake-up was missed. Milliseconds. */
const FALLBACK = 60_000;

const go: Admission = { kind: 'go' };

/**
 * The semaphore for the keys that a run needs while it runs: its `concurrency_key`, and the task itself if the overlap
 * policy is not `allow`. A run of a task without either passes without a read, an append or a turn of the event loop.
 *
 * The order of appends, and what a crash between two of them leaves:
 * - `KeyHeld`, then `RunStarted`. Between them: a slot of a queued run. The worker that takes the run finds its slot;
 *   if none does within a lease, any process that wants the slot reclaims it (`StaleHolderCheck`).
 * - The run's end (or `RunAttemptFailed`), then `KeyReleased`, or `KeyHeld` for the next waiter. If possible, both go
 *   into one call of the log (`KeyHandoff`). Between them: a slot of a run that has ended or is in back-off, which can
 *   be reclaimed at once.
 * - `RunReleased`, then `KeyReleased` if the run's waits give up the key. Between them: a slot that can be reclaimed.
 * - `RunInterrupted` releases nothing: the slot goes with the run to the next worker.
 *
 * A slot is only reclaimed by an append that expects the key as it was before the run's stream was read. A run that
 * returns to its slot also appends, so one of the two loses the race.
 */
export class KeySemaphore {
  readonly #parts: SemaphoreParts;
  readonly #watch: KeyWatch;
  readonly #recheck: KeyRecheck;
  readonly #pending: PendingReleases;
  readonly #waiters: WaiterQueue;
  readonly #handoff: KeyHandoff;

  constructor(parts: SemaphoreParts) {
    this.#parts = parts;
    this.#recheck = new KeyRecheck(parts);
    this.#watch = new KeyWatch(parts, (name) => this.#waiters.schedule(name, null));
    this.#pending = new PendingReleases(parts);
    this.#waiters = new WaiterQueue(parts, this.#watch, this.#pending);
    this.#handoff = new KeyHandoff(parts, this.#watch, this.#waiters, this.#pending);
    parts.queue.subscribe({ onEnded: (run) => this.#onEnded(run) });
  }

  /** Follows the keys until the signal is aborted. */
  follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    return this.#watch.follow(signal, started);
  }

  /** Rechecks keys periodically for slots that were never released, until the signal is aborted. */
  async recheckPeriodically(signal: AbortSignal): Promise<void> {
    const { clock, telemetry } = this.#parts;
    for (let turn = 1; !signal.aborted; turn += 1) {
      await clock.sleep(RECHECK_INTERVAL, signal).catch(() => {});
      if (signal.aborted) break;
      try {
        await this.recheck(turn % FULL_RECHECK_EVERY === 0);
        telemetry.failures.worked(FAILURE);
      } catch (error) {
        telemetry.failures.failed(FAILURE, error);
      }
    }
  }

  /** Rechecks once. @param all also the keys in use that no local run waits for */
  async recheck(all: boolean): Promise<void> {
    for (const { run, name } of this.#handoff.takeExpired(this.#parts.clock.now())) {
      await this.#reclaim(name, (state) => placesOfRun(state, run.id), GRANT_LIFETIME);
    }
    const wanted = this.#watch.wanted();
    for (const name of all ? [...wanted, ...this.#watch.inUse()] : wanted) {
      await this.#recheckKey(name, all);
    }
    this.#recheck.forgetOld();
  }

  /** @param reads reads the key even without a suspicious place, because the known state may be out of date */
  async #recheckKey(name: KeyName, reads = false): Promise<void> {
    const known = this.#watch.peek(name);
    if (reads || known === undefined || this.#recheck.candidates(known.state).length > 0) {
      await this.#reclaim(name, (state) => this.#recheck.candidates(state));
    }
    this.#watch.wakeWaiters(name);
  }

  /** The worker takes no more runs. Resolves when all releases have succeeded or were given up. Never rejects. */
  settled(): Promise<void> {
    this.#handoff.releaseGrants();
    return this.#pending.settled();
  }

  /** Takes the keys for a run that is about to start. @returns whether the run may start now */
  admit(run: QueuedRun, task: LiveTask): Admission | Promise<Admission> {
    return isKeyed(task) ? this.#takeKeys(run, task) : go;
  }

  /**
   * Parks a run that would only be told to wait for its concurrency key, as far as is known here. If many runs share a
   * key, this saves each of them a worker's slot, a turn of the event loop and a read.
   *
   * @returns whether the run waits now
   */
  park(run: QueuedRun): boolean {
    const { tasks, queue, clock } = this.#parts;
    const task = tasks.peek(run.taskId, run.taskRevision);
    // A canceled run, or a run of an inactive task, is decided by the worker that takes it.
    if (task === undefined || run.cancelRequested || !tasks.isActive(run.taskId)) return false;
    if (task.definition.concurrency_key === null || task.definition.overlap_policy !== 'allow') {
      return false;
    }
    const [name] = keysOf(task, run);
    const known = name && this.#watch.peek(name);
    if (known === undefined || name === undefined || this.isGranted(run)) return false;
    const claim = claimOf(run, task, name);
    const now = clock.now();
    const { outcome, events } = holdKey(known.state, claim, now);
    if (outcome === 'held') return false;
    this.#watch.startWaiting(run, name);
    queue.putBack(run, now + FALLBACK);
    if (this.#recheck.begin(name)) {
      this.#pending.start(run.id, name, () => this.#recheckKey(name));
    }
    const changes = events.length > 0;
    if (changes && !this.#watch.isBehindUnrecorded(known.state, claim)) {
      this.#waiters.schedule(name, run);
    }
    return true;
  }

  /** Whether a run was handed its key and need not ask for it. */
  isGranted({ id }: QueuedRun): boolean {
    return this.#handoff.isGranted(id);
  }

  /** Selects a run's preferred worker. */
  affinityOf(run: QueuedRun): string {
    return affinityOf(run, this.#parts.tasks.peek(run.taskId, run.taskRevision));
  }

  /**
   * Called when a run's turn has come, but its task makes it wait. The run leaves the waiters, so that they do not wait
   * for it.
   */
  postpone(run: QueuedRun, task: LiveTask): void {
    if (!this.#watch.isWaiting(run.id)) return;
    this.#watch.stopWaiting(run.id);
    for (const name of keysOf(task, run)) {
      if (name.kind !== 'concurrency') continue;
      this.#pending.start(run.id, name, async () => {
        await changeKey(this.#parts.store, name, contextOf(this.#parts, run.id), (state) => ({
          events: releaseWaiter(state, run.id),
          answer: null,
        }));
      });
    }
  }

  /** Called when a run is about to end. Releases its concurrency key in the same call of the log, after the end. */
  handOver(run: QueuedRun, task: LiveTask, end: RunEvent): HandOver | null {
    return isKeyed(task) ? this.#handoff.handOver(run, task, end) : null;
  }

  /** Called when a worker has finished with a run. Releases the keys that the run no longer needs. */
  released(run: QueuedRun, task: LiveTask): void {
    if (!isKeyed(task) || this.#handoff.isHandedOver(run)) return;
    if (run.state === 'waiting' && releasesKey(run.waits)) this.lost(run, task);
    else this.#release(run, task);
  }

  /** Called when another process has moved the run on. Reclaims the keys that were taken for it here in vain. */
  lost(run: QueuedRun, task: LiveTask): void {
    for (const name of keysOf(task, run)) {
      this.#pending.start(run.id, name, () =>
        this.#reclaim(name, (state) => placesOfRun(state, run.id)),
      );
    }
  }

  async #takeKeys(run: QueuedRun, task: LiveTask): Promise<Admission> {
    for (const name of keysOf(task, run)) {
      if (await this.#hold(run, task, name)) continue;
      const now = this.#parts.clock.now();
      // Another process moved the run on in the meantime, and does not know of its place.
      if (run.ended) this.#release(run, task);
      else if (run.runAt > now) this.lost(run, task);
      return { kind: 'wait', until: now + FALLBACK };
    }
    this.#watch.stopWaiting(run.id);
    return go;
  }

  async #hold(run: QueuedRun, task: LiveTask, name: KeyName): Promise<boolean> {
    for (;;) {
      const context = contextOf(this.#parts, run.id);
      const claim = claimOf(run, task, name);
      if (name.kind === 'concurrency' && this.#handoff.useGrant(run, claim.attempt, context.now)) {
        return true;
      }
      this.#watch.startWaiting(run, name);
      const known = this.#watch.peek(name);
      if (known !== undefined && this.#mustWait(known.state, claim)) return false;
      const changed = await this.#claim(name, claim, context);
      this.#watch.note(name, changed);
      if (changed.answer === 'held') return true;
      const cancels = task.definition.overlap_policy === 'cancel_running';
      // A backfill's run never cancels others.
      if (name.kind === 'overlap' && cancels && run.trigger !== 'backfill') {
        await cancelRunsAhead(this.#parts.store, changed.state, run.id, context);
      }
      // If the key has changed during the decision, decide again.
      this.#watch.startWaiting(run, name);
      const later = this.#watch.peek(name);
      if (later === undefined || later.revision <= changed.revision) return false;
      if (holdKey(later.state, claim, context.now).outcome === 'waiting') return false;
    }
  }

  /**
   * Whether a run has to wait, without reading the log: it has no turn yet, and is recorded together with others. Now
   * and then a run asks anyway, which checks whether the runs ahead still need their places.
   */
  #mustWait(known: KeyState, claim: KeyClaim): boolean {
    const { queue, clock } = this.#parts;
    const { outcome, events } = holdKey(known, claim, clock.now());
    const isRecorded = known.waiters.some(({ run_id }) => run_id === claim.run_id);
    if (outcome === 'waiting' && events.length === 0 && !isRecorded) return true;
    if (this.#watch.isBehindUnrecorded(known, claim)) return true;
    if (known.kind !== 'concurrency' || outcome === 'held') return false;
    if (this.#recheck.isDue(known)) return false;
    if (!isRecorded) this.#waiters.schedule(known, queue.get(claim.run_id) ?? null);
    return true;
  }

  #claim(
    name: KeyName,
    claim: KeyClaim,
    context: KeyContext,
  ): Promise<KeyChanged<KeyDecision['outcome']>> {
    const { store, membership } = this.#parts;
    const staleHolders = new StaleHolderCheck(store, context, membership.lease);
    const mayRecheck = this.#recheck.begin(name);
    return changeKey(store, name, context, async (state) => {
      const { outcome, events } = holdKey(state, claim, context.now);
      if (outcome === 'held') return { events, answer: outcome };
      const candidates = mayRecheck ? this.#recheck.candidates(state, claim.run_id) : [];
      const stale = await staleHolders.findStale(name, candidates);
      if (stale.length === 0)
        return { events: this.#enqueue(state, events, claim), answer: outcome };
      const after = releaseAll(state, stale);
      this.#reportReclaimed(name, stale);
      const second = holdKey(after.state, claim, context.now);
      return { events: [...after.events, ...second.events], answer: second.outcome };
    });
  }

  /** Records a waiter together with the unrecorded runs before it. */
  #enqueue(state: KeyState, events: KeyDecision['events'], claim: KeyClaim): KeyDecision['events'] {
    const run = this.#parts.queue.get(claim.run_id);
    if (state.kind !== 'concurrency' || !run) return events;
    return this.#waiters.enqueue(state, this.#parts.clock.now(), [run]);
  }

  /** Takes a key from the runs that have lost their claim to it. */
  async #reclaim(
    name: KeyName,
    candidates: (state: KeyState) => readonly KeyPlace[],
    lease = this.#parts.membership.lease,
  ): Promise<void> {
    const context = contextOf(this.#parts, name.key);
    const changed = await releaseStale(this.#parts.store, name, context, lease, candidates);
    if (changed.answer.length > 0) this.#reportReclaimed(name, changed.answer);
    this.#watch.note(name, changed);
  }

  #release(run: QueuedRun, task: LiveTask): void {
    // Read now, because the run may be resumed before the key is written.
    const { ended, state, attempt } = run;
    if (ended) this.#watch.stopWaiting(run.id);
    for (const name of keysOf(task, run)) {
      // During back-off, the run keeps the task's own slot. A run that continues elsewhere keeps
      // all its keys.
      if (!ended && (state !== 'retrying' || name.kind !== 'concurrency')) continue;
      this.#pending.start(run.id, name, async () => {
        const context = contextOf(this.#parts, run.id);
        const changed = await changeKey(
          this.#parts.store,
          name,
          context,
          (key) => {
            const events = releaseKey(key, run.id, ended ? undefined : attempt);
            return this.#waiters.handOn(name, events, context.now);
          },
          () => this.#watch.peek(name),
        );
        this.#handoff.start(changed.answer);
        this.#watch.note(name, changed);
        this.#watch.wakeWaiters(name);
      });
    }
  }

  /**
   * Called when a run has ended without a worker of this process: it was canceled in the queue, or executed elsewhere.
   */
  #onEnded(run: QueuedRun): void {
    const { membership, tasks } = this.#parts;
    // The run's worker releases the key. If it dies first, the next recheck finds that the run has ended.
    if (run.state === 'running' && run.owner !== membership.id) {
      this.#watch.stopWaiting(run.id);
      return;
    }
    const isCanceledInQueue = run.state !== 'running' && this.#watch.isPreferred(run.id);
    if (!this.#watch.isWaiting(run.id) && !isCanceledInQueue) return;
    const task = tasks.peek(run.taskId, run.taskRevision);
    if (task !== undefined) return this.#leave(run, task);
    // The task has changed since. The keys follow from the revision to which the run is pinned.
    this.#pending.start(run.id, null, async () =>
      this.#leave(run, await tasks.at(run.taskId, run.taskRevision)),
    );
  }

  #leave(run: QueuedRun, task: LiveTask): void {
    if (isKeyed(task)) this.#release(run, task);
    else this.#watch.stopWaiting(run.id);
  }

  #reportReclaimed({ kind }: KeyName, runs: readonly string[]): void {
    const { telemetry } = this.#parts;
    telemetry.count('scheduler_mended_total', { what: 'key_without_run' }, runs.length);
    telemetry.log.info('released a key held by runs that do not need it', { kind, runs });
  }
}

function placesOfRun(state: KeyState, runId: string): readonly KeyPlace[] {
  return placesOf(state).filter(({ run_id }) => run_id === runId);
}
