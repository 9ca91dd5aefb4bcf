import type { RecordedEvent } from '../../domain/event-store.ts';
import type { KeyEvent } from '../../domain/events/catalogue.ts';
import type { KnownKey } from '../../domain/keys/key-stream.ts';
import { KEPT_DEDUPE_EVENTS } from '../../domain/keys/dedupe-history.ts';
import {
  MAX_WAITERS,
  admissibleWaiters,
  stateAfter,
  type KeyClaim,
  type KeyName,
  type KeyState,
  type KeyWaiter,
} from '../../domain/keys/key.ts';
import { streamOf } from './key-names.ts';
import type { SemaphoreParts } from './semaphore-parts.ts';
import { preferredWorker } from '../runs/preferred-worker.ts';
import { mayStart } from '../runs/queued-run.ts';
import type { QueuedRun } from '../runs/queued-run.ts';

/** The message that reports a failure. */
const NOT_TRUNCATED = "could not truncate a key's stream; retrying later";

/** How long work is left to the worker that is preferred for it. Milliseconds. */
export const HOLD_BACK = 75;

/** A key's stream is truncated once in so many events, because each truncation is a commit of the log. */
export const TRUNCATE_EVERY = 400;

/** With fewer waiters than this, unrecorded runs get recorded. */
const SHORT_QUEUE = MAX_WAITERS / 2;

/**
 * Follows the keys in use, and the local runs that wait for them: when a slot becomes free, the admissible waiters are
 * put back into the queue. The recheck of the semaphore finds changes that are missed here, such as a slot that is
 * never released.
 */
export class KeyWatch {
  readonly #parts: Pick<SemaphoreParts, 'store' | 'queue' | 'membership' | 'clock' | 'telemetry'>;
  readonly #onShortQueue: (name: KeyName) => void;
  /** Keys with a holder, a waiter, or a local run that waits. */
  readonly #known = new Map<string, KnownKey>();
  readonly #waiting = new Map<string, Map<string, QueuedRun>>();
  readonly #waitsFor = new Map<string, KeyName>();
  /** Runs with a slot or a place, by the state of a key: many runs ask about the same state. */
  readonly #recorded = new WeakMap<KeyState, ReadonlySet<string>>();
  /** Runs that were put back into the queue and have not asked since. */
  readonly #woken = new Set<string>();

  /** @param onShortQueue called when few waiters are left and unrecorded runs wait here */
  constructor(
    parts: Pick<SemaphoreParts, 'store' | 'queue' | 'membership' | 'clock' | 'telemetry'>,
    onShortQueue: (name: KeyName) => void = () => {},
  ) {
    this.#parts = parts;
    this.#onShortQueue = onShortQueue;
  }

  /** Follows the keys from the present end of the log until the signal is aborted. */
  async follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    const { store } = this.#parts;
    const after = await store.head();
    // The state known before an interruption may have changed.
    this.#known.clear();
    started();
    for await (const message of store.subscribe({ after, prefixes: ['key-'], signal })) {
      if (message.kind === 'events') for (const event of message.events) this.#take(event);
    }
  }

  /** Called when a run is about to ask for a key. From then on, no change of the key is missed. */
  startWaiting(run: QueuedRun, name: KeyName): void {
    const before = this.#waitsFor.get(run.id);
    if (before !== undefined && before !== name) this.stopWaiting(run.id);
    const stream = streamOf(name);
    this.#waitsFor.set(run.id, name);
    const runs = this.#waiting.get(stream) ?? new Map<string, QueuedRun>();
    this.#waiting.set(stream, runs.set(run.id, run));
    this.#woken.delete(run.id);
  }

  /** Notes that a run has stopped waiting. */
  stopWaiting(runId: string): void {
    this.#woken.delete(runId);
    const name = this.#waitsFor.get(runId);
    if (name === undefined) return;
    this.#waitsFor.delete(runId);
    const stream = streamOf(name);
    const runs = this.#waiting.get(stream);
    runs?.delete(runId);
    if (runs?.size === 0) this.#waiting.delete(stream);
    this.#dropUnused(stream);
  }

  isWaiting(runId: string): boolean {
    return this.#waitsFor.has(runId);
  }

  isWaitingFor(runId: string, { kind, owner, key }: KeyName): boolean {
    const name = this.#waitsFor.get(runId);
    return name?.kind === kind && name.owner === owner && name.key === key;
  }

  /** The known state of a key, without reading. */
  peek(name: KeyName): KnownKey | undefined {
    return this.#known.get(streamOf(name));
  }

  /** Keys that local runs wait for. */
  wanted(): readonly KeyName[] {
    // A run that ended during its request for the key is still in the map.
    for (const runs of [...this.#waiting.values()]) {
      for (const run of [...runs.values()]) if (run.ended) this.stopWaiting(run.id);
    }
    return [...this.#waiting.values()].flatMap((runs) => {
      const [first = ''] = runs.keys();
      return this.#waitsFor.get(first) ?? [];
    });
  }

  /** Keys in use for which this worker is preferred. */
  inUse(): readonly KeyName[] {
    return [...this.#known]
      .filter(([stream]) => this.isPreferred(stream))
      .map(([, { state }]) => ({ kind: state.kind, owner: state.owner, key: state.key }));
  }

  /** Whether this worker is preferred for a waiter's run, as `affinityOf` has it. */
  isPreferredFor(name: KeyName, { run_id, limit }: KeyWaiter): boolean {
    return this.isPreferred(name.kind === 'concurrency' && limit === 1 ? streamOf(name) : run_id);
  }

  /** Whether this worker is preferred for a stream or a run. */
  isPreferred(id: string): boolean {
    const { membership } = this.#parts;
    const workers = membership.withRole('worker');
    return workers.length < 2 || preferredWorker(id, workers) === membership.id;
  }

  /** Takes in a key as it was read or written by this process. */
  note(name: KeyName, { state, revision }: KnownKey): void {
    const stream = streamOf(name);
    if (revision >= (this.#known.get(stream)?.revision ?? -1)) this.#keep(stream, state, revision);
  }

  /** Puts the local runs that may take a slot back into the queue. */
  wakeWaiters(name: KeyName): void {
    this.#wake(streamOf(name));
  }

  #take(event: RecordedEvent): void {
    const { telemetry, membership } = this.#parts;
    const { stream, revision, fault } = event;
    if (fault !== undefined) {
      telemetry.log.error('an event of a key does not match its schema', { stream, fault });
      return;
    }
    membership.noteWriter(event.metadata.source);
    const state = stateAfter(event as unknown as KeyEvent);
    if (revision > 0 && revision % TRUNCATE_EVERY === 0 && this.isPreferred(stream)) {
      // Late runs look at older uses.
      const kept = state.kind === 'dedupe' ? KEPT_DEDUPE_EVENTS : 0;
      void this.#truncate(stream, revision - kept);
    }
    if (revision <= (this.#known.get(stream)?.revision ?? -1)) return;
    this.#keep(stream, state, revision);
    this.#wake(stream);
  }

  #keep(stream: string, state: KeyState, revision: number): void {
    this.#known.set(stream, { state, revision });
    this.#dropUnused(stream);
  }

  #dropUnused(stream: string): void {
    const { state } = this.#known.get(stream) ?? {};
    if (state === undefined || this.#waiting.has(stream)) return;
    if (state.holders.length === 0 && state.waiters.length === 0) this.#known.delete(stream);
  }

  /** Only the last event of a key is needed; for a dedupe key, some more. */
  async #truncate(stream: string, before: number): Promise<void> {
    if (before <= 0) return;
    try {
      await this.#parts.store.truncate(stream, before);
      this.#parts.telemetry.failures.worked(NOT_TRUNCATED);
    } catch (error) {
      this.#parts.telemetry.failures.failed(NOT_TRUNCATED, error, { stream });
    }
  }

  #wake(stream: string): void {
    const { queue, clock } = this.#parts;
    const key = this.#known.get(stream);
    const runs = this.#waiting.get(stream);
    if (key === undefined || runs === undefined) return;
    if (this.unrecorded(key.state).length > 0) this.#onShortQueue(key.state);
    const woken = admissibleWaiters(key.state).flatMap((waiter) => {
      const run = runs.get(waiter.run_id);
      if (run === undefined || this.#woken.has(run.id)) return [];
      return [{ run, isPreferred: this.isPreferredFor(key.state, waiter) }];
    });
    if (woken.length === 0) return;
    for (const { run } of woken) this.#woken.add(run.id);
    // Done later, because a run that must wait has to be back in the queue first.
    setImmediate(() => {
      const now = clock.now();
      for (const { run, isPreferred } of woken) {
        queue.putBack(run, isPreferred ? now : now + HOLD_BACK);
        // Still being decided. The decision will see that the key has changed.
        if (run.taken) this.#woken.delete(run.id);
      }
      queue.notifyReady();
    });
  }

  #recordedIn(state: KeyState): ReadonlySet<string> {
    const cached = this.#recorded.get(state);
    if (cached !== undefined) return cached;
    const recorded = new Set([...state.waiters, ...state.holders].map(({ run_id }) => run_id));
    this.#recorded.set(state, recorded);
    return recorded;
  }

  /**
   * Whether a claim comes after enough unrecorded local runs to fill the queue. They are recorded together once the
   * queue is short; recording each at once would append all waiters each time.
   */
  isBehindUnrecorded(state: KeyState, claim: KeyClaim): boolean {
    const runs = this.#waiting.get(streamOf(state));
    if (runs === undefined || state.waiters.length < SHORT_QUEUE) return false;
    const recorded = this.#recordedIn(state);
    if (recorded.has(claim.run_id)) return false;
    let before = 0;
    for (const run of runs.values()) {
      if (run.id === claim.run_id || recorded.has(run.id) || !isPending(run)) continue;
      if (isBefore(claim, run)) continue;
      before += 1;
      if (before >= MAX_WAITERS) return true;
    }
    return false;
  }

  /** Unrecorded local runs, in order, as many as fit; none unless there are fewer than `below` waiters. */
  unrecorded(state: KeyState, below: number = SHORT_QUEUE): readonly QueuedRun[] {
    const runs = this.#waiting.get(streamOf(state));
    if (runs === undefined || state.waiters.length >= below) return [];
    const recorded = this.#recordedIn(state);
    const best: QueuedRun[] = [];
    const room = MAX_WAITERS - state.waiters.length;
    for (const run of runs.values()) {
      const last = best.length < room ? undefined : best.at(-1);
      if (last !== undefined && !isBefore(run, last)) continue;
      if (recorded.has(run.id) || !isPending(run)) continue;
      const place = best.findLastIndex((other) => !isBefore(run, other)) + 1;
      best.splice(place, 0, run);
      if (best.length > room) best.pop();
    }
    return best;
  }
}

const isPending = (run: QueuedRun): boolean => !run.ended && mayStart(run);

type Order = Pick<QueuedRun, 'priority' | 'since'>;

const isBefore = (a: Order, b: Order): boolean =>
  a.priority === b.priority ? a.since < b.since : a.priority < b.priority;
