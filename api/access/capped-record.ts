import { toIso, type Cancel, type Clock } from '../../domain/clock.ts';
import { EventStoreError, type EventStore, type NewEvent } from '../../domain/event-store.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Things of an agent that are told one by one in a minute; those beyond are summed. */
const TOLD_IN_A_MINUTE = 30;
const MINUTE = 60_000;

/** Milliseconds from the first thing that is not written until it is. */
const DELAY = 1000;

/** Things that wait while the log is away; those beyond are summed too. */
const MOST_WAITING = 10_000;

/** Events of one append. */
const TOGETHER = 100;

/** Something that an agent did, or was refused, that changed nothing. */
export interface Noted {
  readonly agentId: string;
  readonly context: CommandContext;
}

/** How often something was noted. */
export interface Counted {
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
}

/** How the things of a record are summed and written. */
export interface Recording<N extends Noted> {
  /** What they are called in the log of the process: `refused commands`. */
  readonly what: string;
  /** Those that are summed together. */
  readonly keyOf: (noted: N) => string;
  /** @param day `2026-11-21` */
  readonly streamOf: (agentId: string, day: string) => string;
  /** @param isSum several were summed, or may have been */
  readonly eventOf: (noted: N, counted: Counted, isSum: boolean) => DomainEvent;
}

/** What a record needs. */
export interface RecordParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

interface Waiting {
  readonly stream: string;
  readonly event: NewEvent;
}

/** One append. */
interface Batch {
  readonly stream: string;
  readonly events: readonly NewEvent[];
}

/** What was noted of an agent in one minute. */
interface Minute<N> {
  readonly began: number;
  told: number;
  readonly sums: Map<string, { readonly last: N; count: number; readonly first_at: string }>;
}

/**
 * A record off the path of the requests: kept for up to a second, then appended. However much an agent does, it has so
 * many events in a minute and one more for each kind of thing.
 */
export class CappedRecord<N extends Noted> {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #recording: Recording<N>;
  readonly #minutes = new Map<string, Minute<N>>();
  #waiting: Waiting[] = [];
  /** What was tried, and is to be tried again. */
  #batches: Batch[] = [];
  #forget: Cancel | null = null;
  #flushing: Promise<void> = Promise.resolve();
  #failing = false;

  constructor(options: RecordParts, recording: Recording<N>) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
    this.#recording = recording;
  }

  /** Takes note of one. Never fails, and waits for nothing. */
  note(noted: N): void {
    const minute = this.#minuteOf(noted);
    if (minute.told < TOLD_IN_A_MINUTE && this.#undone < MOST_WAITING) {
      minute.told += 1;
      this.#wait(noted, 1, toIso(noted.context.now), false);
    } else {
      const key = this.#recording.keyOf(noted);
      const sum = minute.sums.get(key);
      const first_at = sum?.first_at ?? toIso(noted.context.now);
      minute.sums.set(key, { last: noted, count: (sum?.count ?? 0) + 1, first_at });
    }
    this.#arm();
  }

  /** Appends what waits, as far as the log takes it; sums only of minutes that are over. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#append(false));
    return this.#flushing;
  }

  /** Appends everything, sums included; called when no more requests come. */
  async close(): Promise<void> {
    this.#forget?.();
    this.#forget = null;
    this.#flushing = this.#flushing.then(() => this.#append(true));
    await this.#flushing;
  }

  /** How many wait, about: of those that are tried again each batch counts whole. */
  get #undone(): number {
    return this.#waiting.length + this.#batches.length * TOGETHER;
  }

  #minuteOf({ agentId, context: { now } }: N): Minute<N> {
    const began = Math.floor(now / MINUTE);
    const known = this.#minutes.get(agentId);
    if (known?.began === began) return known;
    if (known !== undefined) this.#endMinute(known);
    const minute: Minute<N> = { began, told: 0, sums: new Map() };
    this.#minutes.set(agentId, minute);
    return minute;
  }

  #endMinute({ sums }: Minute<N>): void {
    for (const { last, count, first_at } of sums.values()) {
      this.#wait(last, count, first_at, true);
    }
    sums.clear();
  }

  #wait(noted: N, count: number, first_at: string, isSum: boolean): void {
    const { agentId, context } = noted;
    const { streamOf, eventOf } = this.#recording;
    const last_at = toIso(context.now);
    const stream = streamOf(agentId, last_at.slice(0, 10));
    const own = { ...context, actor: agentId, commandId: newId(context.now) };
    const [event] = toNewEvents(stream, [eventOf(noted, { count, first_at, last_at }, isSum)], own);
    if (event !== undefined) this.#waiting.push({ stream, event });
  }

  #arm(): void {
    if (this.#forget !== null) return;
    const flush = (): void => {
      this.#forget = null;
      void this.flush().then(() => {
        if (this.#undone > 0 || this.#minutes.size > 0) this.#arm();
      });
    };
    this.#forget = this.#clock.after(DELAY, flush, { background: true });
  }

  async #append(everything: boolean): Promise<void> {
    const minute = Math.floor(this.#clock.now() / MINUTE);
    for (const [agentId, each] of this.#minutes) {
      if (!everything && each.began === minute) continue;
      this.#endMinute(each);
      this.#minutes.delete(agentId);
    }
    this.#batches.push(...batchesOf(this.#waiting));
    this.#waiting = [];
    const batches = this.#batches;
    this.#batches = [];
    for (const batch of batches) {
      try {
        await this.#store.append(batch.stream, batch.events, 'any');
        this.#failing = false;
      } catch (error) {
        this.#failed(error, batch);
      }
    }
  }

  /** A batch stays as it is: what was written although the answer was lost is then not written twice. */
  #failed(error: unknown, batch: Batch): void {
    const { log } = this.#telemetry;
    const { what } = this.#recording;
    const { stream, events } = batch;
    const passes =
      error instanceof EventStoreError &&
      (error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN');
    if (!passes) {
      log.error(`${what} can not be recorded`, { stream, count: events.length, error });
      return;
    }
    this.#batches.push(batch);
    if (!this.#failing) log.warn(`${what} could not be recorded; trying again`, { error });
    this.#failing = true;
  }
}

/** What waits, by stream, in appends of a bounded size. */
function batchesOf(waiting: readonly Waiting[]): readonly Batch[] {
  const batches: Batch[] = [];
  const open = new Map<string, NewEvent[]>();
  for (const { stream, event } of waiting) {
    const events = open.get(stream);
    if (events !== undefined && events.length < TOGETHER) {
      events.push(event);
      continue;
    }
    const begun = [event];
    open.set(stream, begun);
    batches.push({ stream, events: begun });
  }
  return batches;
}
