import { toIso, type Cancel, type Clock } from '../../domain/clock.ts';
import { EventStoreError, type EventStore, type NewEvent } from '../../domain/event-store.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Events of an agent in a minute that are recorded one by one; later ones are summed. */
const MAX_PER_MINUTE = 30;
const MINUTE = 60_000;

/** How long an event may wait before it is appended. Milliseconds. */
const DELAY = 1000;

/** Events that wait while the log is unavailable; later ones are summed. */
const MAX_WAITING = 10_000;

/** Events of one append. */
const BATCH_SIZE = 100;

/** An action of an agent, or a refusal, that changed nothing. */
export interface Noted {
  readonly agentId: string;
  readonly context: CommandContext;
}

/** A note, with the number of its occurrences. */
export interface Counted {
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
}

/** The rules by which a record sums and writes notes. */
export interface Recording<N extends Noted> {
  /** Names the notes in the process's log: `refused commands`. */
  readonly what: string;
  /** Notes with the same key are summed. */
  readonly keyOf: (noted: N) => string;
  /** @param day `2026-11-21` */
  readonly streamOf: (agentId: string, day: string) => string;
  /** @param isSum several may have been summed */
  readonly eventOf: (noted: N, counted: Counted, isSum: boolean) => DomainEvent;
}

export interface RecordParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** One append. */
interface Batch {
  readonly stream: string;
  readonly events: NewEvent[];
}

/** Notes of an agent in one minute. */
interface Minute<N> {
  readonly began: number;
  recorded: number;
  readonly sums: Map<string, { readonly last: N; count: number; readonly first_at: string }>;
}

/**
 * A record that no request waits for: notes are appended within a second. The events of an agent in a minute are
 * capped. Beyond the cap, one event sums each kind of note.
 */
export class CappedRecord<N extends Noted> {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #recording: Recording<N>;
  readonly #minutes = new Map<string, Minute<N>>();
  /** Batches that are not appended yet. To one of each stream, events are still added. */
  #waiting: Batch[] = [];
  readonly #open = new Map<string, Batch>();
  #waitingEvents = 0;
  /** Failed batches, which are appended again unchanged. */
  #failed: Batch[] = [];
  #cancelFlush: Cancel | null = null;
  #flushing: Promise<void> = Promise.resolve();

  constructor(parts: RecordParts, recording: Recording<N>) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#telemetry = parts.telemetry;
    this.#recording = recording;
  }

  /** Adds a note. Never fails, and does not wait. */
  note(noted: N): void {
    const minute = this.#minuteOf(noted);
    if (minute.recorded < MAX_PER_MINUTE && this.#pending < MAX_WAITING) {
      minute.recorded += 1;
      this.#add(noted, 1, toIso(noted.context.now), false);
    } else {
      const key = this.#recording.keyOf(noted);
      const sum = minute.sums.get(key);
      const first_at = sum?.first_at ?? toIso(noted.context.now);
      minute.sums.set(key, { last: noted, count: (sum?.count ?? 0) + 1, first_at });
    }
    this.#scheduleFlush();
  }

  /** Appends the waiting events, as far as the log accepts them, and the sums of past minutes. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#append(false));
    return this.#flushing;
  }

  /** Appends all events, including all sums. Called after the last request. */
  async close(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    this.#flushing = this.#flushing.then(() => this.#append(true));
    await this.#flushing;
  }

  /** How many events wait at most. */
  get #pending(): number {
    return this.#waitingEvents + this.#failed.length * BATCH_SIZE;
  }

  #minuteOf({ agentId, context: { now } }: N): Minute<N> {
    const began = Math.floor(now / MINUTE);
    const known = this.#minutes.get(agentId);
    if (known?.began === began) return known;
    if (known !== undefined) this.#addSums(known);
    const minute: Minute<N> = { began, recorded: 0, sums: new Map() };
    this.#minutes.set(agentId, minute);
    return minute;
  }

  #addSums({ sums }: Minute<N>): void {
    for (const { last, count, first_at } of sums.values()) this.#add(last, count, first_at, true);
    sums.clear();
  }

  #add(noted: N, count: number, first_at: string, isSum: boolean): void {
    const { agentId, context } = noted;
    const { streamOf, eventOf } = this.#recording;
    const last_at = toIso(context.now);
    const stream = streamOf(agentId, last_at.slice(0, 10));
    const own = { ...context, actor: agentId, commandId: newId(context.now) };
    const event = eventOf(noted, { count, first_at, last_at }, isSum);
    let batch = this.#open.get(stream);
    if (batch === undefined || batch.events.length === BATCH_SIZE) {
      batch = { stream, events: [] };
      this.#open.set(stream, batch);
      this.#waiting.push(batch);
    }
    batch.events.push(...toNewEvents(stream, [event], own));
    this.#waitingEvents += 1;
  }

  #scheduleFlush(): void {
    if (this.#cancelFlush !== null) return;
    const flush = (): void => {
      this.#cancelFlush = null;
      void this.flush().then(() => {
        if (this.#pending > 0 || this.#minutes.size > 0) this.#scheduleFlush();
      });
    };
    this.#cancelFlush = this.#clock.after(DELAY, flush, { background: true });
  }

  async #append(everything: boolean): Promise<void> {
    const minute = Math.floor(this.#clock.now() / MINUTE);
    for (const [agentId, each] of this.#minutes) {
      if (!everything && each.began === minute) continue;
      this.#addSums(each);
      this.#minutes.delete(agentId);
    }
    const batches = [...this.#failed, ...this.#waiting];
    this.#failed = [];
    this.#waiting = [];
    this.#open.clear();
    this.#waitingEvents = 0;
    for (const batch of batches) {
      try {
        await this.#store.append(batch.stream, batch.events, 'any');
        this.#telemetry.failures.worked(this.#failure);
      } catch (error) {
        this.#onFailure(error, batch);
      }
    }
  }

  get #failure(): string {
    return `${this.#recording.what} could not be recorded; retrying`;
  }

  /** A failed batch stays unchanged. If it was appended after all, the log recognises the repetition. */
  #onFailure(error: unknown, batch: Batch): void {
    const { log, failures } = this.#telemetry;
    const { what } = this.#recording;
    const { stream, events } = batch;
    const isTransient =
      error instanceof EventStoreError &&
      (error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN');
    if (!isTransient) {
      log.error(`${what} cannot be recorded`, { stream, count: events.length, error });
      return;
    }
    this.#failed.push(batch);
    failures.failed(this.#failure, error);
  }
}
