import { fromIso } from '../../domain/clock.ts';
import {
  BEGINNING,
  type Position,
  type RecordedEvent,
  type SubscriptionMessage,
} from '../../domain/event-store.ts';
import type { TriggeringEvent } from '../../domain/events/catalogue.ts';
import { triggeringEventOf } from '../../domain/topics/stored-payload.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { isOpen } from '../../domain/runs/run-waits.ts';
import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import { compileTopicPattern } from '../../domain/schedule/topic-pattern.ts';
import { ReachedPosition } from '../../projections/reading/reached-position.ts';
import type { LogCheckpoint } from '../processes/log-checkpoint.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { RunParts } from '../runs/run-work.ts';
import type { EventConditions } from './event-conditions.ts';
import { isPublished, publishedBetween, startOfWait, type Published } from './event-search.ts';
import { OpenEventWaits, type EventWait } from './open-event-waits.ts';
import type { PersistentWork } from './persistent-work.ts';
import type { WaitResumer } from './wait-resumer.ts';

/** The message that reports a failure. */
const NOT_SAVED = 'could not save the position of matched events';

/** How many starts of waits are read at the same time. */
const CONCURRENT_READS = 32;

/** Milliseconds between two saves of the position. */
const SAVE_EVERY = 5000;

export interface FollowerParts extends Pick<RunParts, 'store' | 'queue' | 'clock' | 'telemetry'> {
  readonly resumer: WaitResumer;
  readonly conditions: EventConditions;
  readonly work: PersistentWork;
  readonly checkpoint: LogCheckpoint;
}

/**
 * Matches published events with open waits in log order, during one leadership. An event is matched once the queue has
 * passed it, so that all waits that started before it are known. The start of a wait is read from its run's stream when
 * an event first matches. Earlier events do not count.
 *
 * All events up to the saved position were matched with all waits that started before it.
 */
export class EventFollower {
  readonly #parts: FollowerParts;
  readonly #ending: AbortSignal;
  readonly #fence: number;
  readonly #waits = new OpenEventWaits();
  /** The waits of each run that are indexed or being searched for. */
  readonly #ofRun = new Map<string, readonly EventWait[]>();
  /** Unfinished work in log order, each with the position that may be saved before it is done. */
  readonly #open = new Set<{ readonly before: Position; readonly waitId: string }>();
  readonly #followed = new ReachedPosition();
  #saved: Position = BEGINNING;
  #isStarted = false;

  constructor(parts: FollowerParts, ending: AbortSignal, fence: number) {
    this.#parts = parts;
    this.#ending = ending;
    this.#fence = fence;
  }

  /** Follows the topics until the leadership ends. Rejects when the log or the coordination store fails. */
  async follow(): Promise<void> {
    const { store, queue, checkpoint } = this.#parts;
    const saved = await checkpoint.load();
    await queue.passed(BEGINNING, this.#ending);
    // Without a wait, events up to here do not matter.
    const waiting = [...queue.all()].filter(hasEventWait);
    const after = waiting.length === 0 && saved < queue.position ? queue.position : saved;
    this.#saved = saved;
    this.#followed.reach(after);
    this.#isStarted = true;
    for (const run of waiting) this.#take(run, saved);
    const saving = this.#savePeriodically();
    try {
      const parts = { after, prefixes: ['topic-'], signal: this.#ending };
      for await (const message of store.subscribe(parts)) await this.#follow(message);
    } finally {
      await saving;
    }
  }

  /** A run's waits have changed. */
  take(run: QueuedRun): void {
    // The start will read all runs in their state at that time.
    if (this.#isStarted) this.#take(run, null);
  }

  /** @param matchedUpTo earlier waits were already matched up to this position */
  #take(run: QueuedRun, matchedUpTo: Position | null): void {
    const known = this.#ofRun.get(run.id);
    const isOpenHere = (id: string): boolean =>
      run.waits.some((wait) => wait.wait_id === id && isOpen(wait));
    for (const { waitId } of known ?? []) if (!isOpenHere(waitId)) this.#waits.delete(waitId);
    const open = eventWaitsOf(run);
    if (open.length === 0) {
      if (known !== undefined) this.#ofRun.delete(run.id);
      return;
    }
    const same = open.map((wait) => known?.find(({ waitId }) => waitId === wait.waitId) ?? wait);
    this.#ofRun.set(run.id, same);
    for (const wait of same) if (known?.includes(wait) !== true) this.#add(wait, matchedUpTo);
  }

  /** Whether all events published so far were matched with a wait, and none ends it. False once the leadership ends. */
  async hasNone(waitId: string): Promise<boolean> {
    const head = await this.#parts.store.head();
    const isPassed = this.#followed.passed(head, this.#ending).then(
      () => true,
      () => false,
    );
    return (await isPassed) && ![...this.#open].some((each) => each.waitId === waitId);
  }

  #add(wait: EventWait, matchedUpTo: Position | null): void {
    if (!wait.sinceRun) {
      this.#waits.add(wait);
      return;
    }
    void this.#do(wait, this.#followed.position, 'search', () => this.#search(wait, matchedUpTo));
  }

  /** Work for a wait. The saved position does not move past it until it is done. */
  #do(wait: EventWait, before: Position, what: string, work: () => Promise<void>): Promise<void> {
    const { waitId } = wait;
    const entry = { before, waitId };
    this.#open.add(entry);
    return this.#parts.work
      .add(`${what} ${waitId} ${this.#fence}`, () =>
        this.#ending.aborted ? Promise.resolve() : work(),
      )
      .then(() => void this.#open.delete(entry));
  }

  /** Looks for events since the run was requested, then indexes the wait. */
  async #search(wait: EventWait, matchedUpTo: Position | null): Promise<void> {
    const { store, conditions } = this.#parts;
    const start = await startOfWait(store, wait.runId, wait.waitId);
    if (start === null) return;
    const isMatched = matchedUpTo !== null && start.suspended <= matchedUpTo;
    wait.from = start.requested;
    const pattern = compileTopicPattern(wait.topic);
    let after = isMatched ? matchedUpTo : start.requested;
    for (;;) {
      const upTo = this.#followed.position;
      const range = { after, upTo };
      const events = publishedBetween(store, wait, range, this.#ending);
      for await (const published of events) {
        if (!pattern.matches(published.data.topic)) continue;
        const event = triggeringEventOf(published.data);
        if (fromIso(event.published_at) > wait.until) continue;
        if (wait.condition !== null && !conditions.holds(wait.condition, event, wait)) continue;
        return this.#resume(wait, event);
      }
      // Every event matched in the meantime is also seen by this search.
      if (this.#ending.aborted) return;
      if (this.#followed.position === upTo) {
        if (this.#ofRun.get(wait.runId)?.includes(wait) === true) this.#waits.add(wait);
        return;
      }
      after = upTo > after ? upTo : after;
    }
  }

  async #follow(message: SubscriptionMessage): Promise<void> {
    const { queue, checkpoint, telemetry } = this.#parts;
    if (message.kind === 'caught-up') {
      await queue.passed(message.position, this.#ending);
      this.#followed.reach(message.position);
      return;
    }
    checkpoint.observe(message.events);
    for (const event of message.events) {
      await queue.passed(event.position, this.#ending);
      if (event.fault !== undefined) reportFault(telemetry, event);
      else if (isPublished(event)) await this.#match(event);
      this.#followed.reach(event.position);
    }
  }

  async #match(published: Published): Promise<void> {
    const { conditions } = this.#parts;
    const before = this.#followed.position;
    const event = triggeringEventOf(published.data);
    const namespace = namespaceOf(published.data);
    const candidates = this.#waits.candidates(namespace, event.topic, { event });
    // Searches that end after this point must have seen it.
    this.#followed.reach(published.position);
    const entry = { before, waitId: '' };
    this.#open.add(entry);
    const publishedAt = fromIso(event.published_at);
    const inTime = candidates.filter(({ until }) => publishedAt <= until);
    const met = await conditions.met(event, inTime);
    const counts = await mapInBatches(met, CONCURRENT_READS, (wait) =>
      this.#counts(wait, published.position),
    );
    for (const [index, wait] of met.entries()) {
      if (counts[index] !== true) continue;
      this.#waits.delete(wait.waitId);
      void this.#do(wait, before, 'resume', () => this.#resume(wait, event));
    }
    this.#open.delete(entry);
  }

  /** Whether a wait started before an event. */
  async #counts(wait: EventWait, position: Position): Promise<boolean> {
    if (wait.from === null) {
      const start = await startOfWait(this.#parts.store, wait.runId, wait.waitId);
      if (start === null) return false;
      wait.from = start.suspended;
    }
    return wait.from < position;
  }

  async #resume({ runId, waitId }: EventWait, event: TriggeringEvent): Promise<void> {
    const { queue, resumer } = this.#parts;
    // While the queue is being reloaded, it does not know the run.
    await queue.passed(BEGINNING, this.#ending);
    const run = queue.get(runId);
    if (run === undefined) return;
    await resumer.resume(run, waitId, { by: { kind: 'event', id: event.id }, result: event });
  }

  async #savePeriodically(): Promise<void> {
    const { clock, checkpoint, telemetry } = this.#parts;
    while (!this.#ending.aborted) {
      await clock.sleep(SAVE_EVERY, this.#ending).catch(() => {});
      const [first] = this.#open;
      const done = first?.before ?? this.#followed.position;
      if (this.#ending.aborted || done <= this.#saved) continue;
      try {
        await checkpoint.save(done, this.#fence);
        this.#saved = done;
        telemetry.failures.worked(NOT_SAVED);
      } catch (error) {
        telemetry.failures.failed(NOT_SAVED, error);
      }
    }
  }
}

function hasEventWait({ waits }: QueuedRun): boolean {
  return waits.some(({ waits_for }) => waits_for.kind === 'event');
}

function eventWaitsOf(run: QueuedRun): readonly EventWait[] {
  const found: EventWait[] = [];
  for (const wait of run.waits) {
    const { waits_for, wait_id: waitId, until } = wait;
    if (waits_for.kind !== 'event' || !isOpen(wait)) continue;
    const { topic, if: condition = null, since } = waits_for;
    const { namespace } = run;
    const what = { namespace, topic, condition, sinceRun: since === 'run' };
    found.push({ runId: run.id, waitId, ...what, until: fromIso(until), from: null });
  }
  return found;
}

function reportFault(telemetry: FollowerParts['telemetry'], event: RecordedEvent): void {
  const { stream, revision, fault } = event;
  const fields = { stream, revision, fault };
  telemetry.log.error('a published event does not match its schema; no wait sees it', fields);
}
