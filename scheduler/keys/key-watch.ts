import type { Clock } from '../../domain/clock.ts';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import type { KeyEvent } from '../../domain/events/catalogue.ts';
import type { KnownKey } from '../../domain/keys/key-stream.ts';
import { USES_LEFT } from '../../domain/keys/late-use.ts';
import {
  LONGEST_LINE,
  nextInLine,
  type KeyClaim,
  type KeyName,
  type KeyState,
  type KeyWaiter,
} from '../../domain/keys/key.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { streamOf } from './key-names.ts';
import type { Membership } from '../processes/membership.ts';
import { prefers } from '../runs/preference.ts';
import type { QueuedRun, RunQueue } from '../runs/run-queue.ts';

/** A run that another worker is the first choice for is left to it for this long. Milliseconds. */
const HOLD_BACK = 75;

/** A key's stream is cut once in so many events: each cut is a commit of the log by itself. */
export const CUT_EVERY = 400;

/** Below this, those who found no place in line are called to it. */
const SHORT_LINE = LONGEST_LINE / 2;

/**
 * The keys in use, live, and the runs of this process that wait for one: as a slot becomes free, just those are put
 * back to the queue that are next in line. What is missed here (an event before this process listened, a slot
 * that nobody gives back) is found by the looks of `KeyKeeper`.
 */
export class KeyWatch {
  private readonly store: EventStore;
  private readonly queue: RunQueue;
  private readonly membership: Membership;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  /** Keys with a holder or a waiter, or that somebody here waits for. */
  private readonly known = new Map<string, KnownKey>();
  private readonly waiting = new Map<string, Map<string, QueuedRun>>();
  private readonly waitsFor = new Map<string, KeyName>();
  /** Who has a slot or a place, by the state of a key: many come to the same one. */
  private readonly placed = new WeakMap<KeyState, ReadonlySet<string>>();
  /** Put back to the queue and not looked at since: once is enough. */
  private readonly woken = new Set<string>();
  /** The line of a key has become short, and there are some here who found it full. */
  onShortLine: (name: KeyName) => void = () => {};

  constructor(options: {
    readonly store: EventStore;
    readonly queue: RunQueue;
    readonly membership: Membership;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.store = options.store;
    this.queue = options.queue;
    this.membership = options.membership;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
  }

  /** Follows the keys from the present end of the log until the signal is aborted. */
  async follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    const after = await this.store.head();
    // What was known before a break may have changed unseen.
    this.known.clear();
    started();
    for await (const message of this.store.subscribe({ after, prefixes: ['key-'], signal })) {
      if (message.kind === 'events') for (const event of message.events) this.take(event);
    }
  }

  /** A run is about to ask for a key. From here on, nothing that happens to the key is missed. */
  expect(run: QueuedRun, name: KeyName): void {
    const before = this.waitsFor.get(run.id);
    if (before !== undefined && before !== name) this.forget(run.id);
    const stream = streamOf(name);
    this.waitsFor.set(run.id, name);
    const runs = this.waiting.get(stream) ?? new Map<string, QueuedRun>();
    this.waiting.set(stream, runs.set(run.id, run));
    this.woken.delete(run.id);
  }

  /** A run waits no more. */
  forget(runId: string): void {
    this.woken.delete(runId);
    const name = this.waitsFor.get(runId);
    if (name === undefined) return;
    this.waitsFor.delete(runId);
    const stream = streamOf(name);
    const runs = this.waiting.get(stream);
    runs?.delete(runId);
    if (runs?.size === 0) this.waiting.delete(stream);
    this.drop(stream);
  }

  isWaiting(runId: string): boolean {
    return this.waitsFor.has(runId);
  }

  isWaitingFor(runId: string, { kind, owner, key }: KeyName): boolean {
    const name = this.waitsFor.get(runId);
    return name?.kind === kind && name.owner === owner && name.key === key;
  }

  /** What is known of a key without reading; undefined when nothing is. */
  peek(name: KeyName): KnownKey | undefined {
    return this.known.get(streamOf(name));
  }

  /** Keys that runs of this process wait for. */
  wanted(): readonly KeyName[] {
    const names = new Map<string, KeyName>();
    for (const [stream, runs] of [...this.waiting]) {
      // One that ended while it was being asked for here was told to nobody.
      for (const run of [...runs.values()]) if (run.ended) this.forget(run.id);
      const [first] = runs.keys();
      const name = first === undefined ? undefined : this.waitsFor.get(first);
      if (name !== undefined) names.set(stream, name);
    }
    return [...names.values()];
  }

  /** Keys in use that this process is the one to look after. */
  inUse(): readonly KeyName[] {
    return [...this.known]
      .filter(([stream]) => this.isMine(stream))
      .map(([, { state }]) => ({ kind: state.kind, owner: state.owner, key: state.key }));
  }

  /** Whether this worker is the first choice for a run that waits for a key, as `affinityOf` has it. */
  isMineToLead(name: KeyName, { run_id, limit }: KeyWaiter): boolean {
    return this.isMine(name.kind === 'concurrency' && limit === 1 ? streamOf(name) : run_id);
  }

  /** Whether this worker is the first choice for something. */
  isMine(id: string): boolean {
    const workers = this.membership.doing('worker');
    return workers.length < 2 || prefers(id, workers) === this.membership.id;
  }

  /** Takes in a key as it was read or written here. */
  note(name: KeyName, state: KeyState, revision: number): void {
    const stream = streamOf(name);
    if (revision >= (this.known.get(stream)?.revision ?? -1)) this.keep(stream, state, revision);
  }

  /** Puts those who may go back to the queue. */
  wakeWaiting(name: KeyName): void {
    this.wake(streamOf(name));
  }

  private take(event: RecordedEvent): void {
    const { stream, revision } = event;
    if (event.fault !== undefined) {
      this.telemetry.log.error('an event of a key does not fit its schema', {
        stream,
        fault: event.fault,
      });
      return;
    }
    this.membership.noticed(event.metadata.source);
    const { run_id: _about, ...state } = event.data as KeyEvent['data'];
    if (revision > 0 && revision % CUT_EVERY === 0 && this.isMine(stream)) {
      // Who comes late looks at the uses before the last one.
      void this.cut(stream, state.kind === 'dedupe' ? revision - USES_LEFT : revision);
    }
    if (revision <= (this.known.get(stream)?.revision ?? -1)) return;
    this.keep(stream, state, revision);
    this.wake(stream);
  }

  private keep(stream: string, state: KeyState, revision: number): void {
    this.known.set(stream, { state, revision });
    this.drop(stream);
  }

  private drop(stream: string): void {
    const { state } = this.known.get(stream) ?? {};
    if (state === undefined || this.waiting.has(stream)) return;
    if (state.holders.length === 0 && state.waiters.length === 0) this.known.delete(stream);
  }

  /** Only the last event of a key is ever read, and some more of a dedupe key. */
  private async cut(stream: string, before: number): Promise<void> {
    if (before <= 0) return;
    try {
      await this.store.truncate(stream, before);
    } catch (error) {
      this.telemetry.log.warn("a key's stream could not be cut; the next cut takes more", {
        stream,
        error,
      });
    }
  }

  private wake(stream: string): void {
    const key = this.known.get(stream);
    const runs = this.waiting.get(stream);
    if (key === undefined || runs === undefined) return;
    if (this.unplaced(key.state).length > 0) this.onShortLine(key.state);
    const called = nextInLine(key.state).flatMap((waiter) => {
      const run = runs.get(waiter.run_id);
      if (run === undefined || this.woken.has(run.id)) return [];
      return [{ run, mine: this.isMineToLead(key.state, waiter) }];
    });
    if (called.length === 0) return;
    for (const { run } of called) this.woken.add(run.id);
    // Not at once: one that has just been told to wait must be back in the queue before it is woken.
    setImmediate(() => {
      const now = this.clock.now();
      for (const { run, mine } of called) {
        this.queue.putBack(run, mine ? now : now + HOLD_BACK);
        // Still being decided: it sees by itself that the key has changed.
        if (run.taken) this.woken.delete(run.id);
      }
      this.queue.onReady();
    });
  }

  private placedIn(state: KeyState): ReadonlySet<string> {
    const before = this.placed.get(state);
    if (before !== undefined) return before;
    const placed = new Set([...state.waiters, ...state.holders].map(({ run_id }) => run_id));
    this.placed.set(state, placed);
    return placed;
  }

  /**
   * Whether a claim comes after a whole line of those here who found no place: they all get theirs when the line has
   * become short. A place for each at once would be an event of the whole line for each.
   */
  comesAfterMany(state: KeyState, claim: KeyClaim): boolean {
    const runs = this.waiting.get(streamOf(state));
    if (runs === undefined || state.waiters.length < SHORT_LINE) return false;
    const placed = this.placedIn(state);
    if (placed.has(claim.run_id)) return false;
    let before = 0;
    for (const { id, priority, since, state: stage, ended } of runs.values()) {
      if (id === claim.run_id || placed.has(id) || ended || stage === 'running') continue;
      if (priority > claim.priority || (priority === claim.priority && since > claim.since))
        continue;
      before += 1;
      if (before >= LONGEST_LINE) return true;
    }
    return false;
  }

  /** Those who found the line full, the best first, as many as it takes; none while it is not shorter than `below`. */
  unplaced(state: KeyState, below: number = SHORT_LINE): readonly QueuedRun[] {
    const runs = this.waiting.get(streamOf(state));
    if (runs === undefined || state.waiters.length >= below) return [];
    const placed = this.placedIn(state);
    const best: QueuedRun[] = [];
    const most = LONGEST_LINE - state.waiters.length;
    for (const run of runs.values()) {
      const last = best.length < most ? undefined : best.at(-1);
      if (last !== undefined && !goesBefore(run, last)) continue;
      if (placed.has(run.id) || run.ended || run.state === 'running') continue;
      const place = best.findLastIndex((other) => !goesBefore(run, other)) + 1;
      best.splice(place, 0, run);
      if (best.length > most) best.pop();
    }
    return best;
  }
}

const goesBefore = (a: QueuedRun, b: QueuedRun): boolean =>
  a.priority === b.priority ? a.since < b.since : a.priority < b.priority;
