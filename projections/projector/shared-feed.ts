import type { Clock } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';

/** What a reader gets of the feed. */
export type FeedPage =
  /** Everything up to `upTo`; the events may be none, where only others' streams moved. */
  | { readonly kind: 'events'; readonly events: readonly RecordedEvent[]; readonly upTo: Position }
  /** The reader's place lies before (or the feed has not begun): it has to come here by itself. */
  | { readonly kind: 'behind' }
  /** Nothing came in the time that the reader was willing to wait. */
  | { readonly kind: 'quiet' }
  | { readonly kind: 'stopped' };

interface Chunk {
  upTo: Position;
  readonly events: readonly RecordedEvent[];
  /** How many events the feed had delivered before this chunk. */
  readonly before: number;
}

/**
 * One subscription for all views that are level, so that each event is read and parsed once. It holds a
 * window of recent events in memory. The slowest reader that takes part holds the source back; one that
 * stops taking part holds back nobody, and has to read by itself until it is within the window again.
 */
export class SharedFeed {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #prefixes: readonly string[];
  readonly #retained: number;
  readonly #chunks: Chunk[] = [];
  /** By reader: how many of the feed's events it has behind it. */
  readonly #readers = new Map<object, number>();
  /** Readers that wait for events. */
  readonly #thirsty = new Set<() => void>();
  /** The filling that waits for room, or to begin. */
  readonly #full = new Set<() => void>();
  #start: Position | null = null;
  #delivered = 0;
  #level = false;
  #fault: unknown = null;

  /**
   * @param retained events kept for readers that come back after a short absence, and read ahead of the slowest one: a
   *   batch of theirs, which they would else wait for in vain
   */
  constructor(store: EventStore, clock: Clock, prefixes: readonly string[], retained: number) {
    this.#store = store;
    this.#clock = clock;
    this.#prefixes = prefixes;
    this.#retained = retained;
  }

  /** Begins after a position, unless it has begun. */
  begin(after: Position): void {
    if (this.#start !== null) return;
    this.#start = after;
    wake(this.#full);
    wake(this.#thirsty);
  }

  /** Whether a reader at this place can go on from here. */
  holds(position: Position): boolean {
    return this.#start !== null && position >= this.#start;
  }

  /** Whether a reader at this place has everything that is in the log. */
  isLevelAt(position: Position): boolean {
    return this.#level && position >= this.#end();
  }

  /** What ended the last filling; null once events come again. */
  get fault(): unknown {
    return this.#fault;
  }

  /**
   * Reads the log into the window until the signal is aborted. Call it again after an error: it goes on.
   * @throws EventStoreError `NEWER_SCHEMA`, or what the store could not get over by itself
   */
  async fill(signal: AbortSignal): Promise<void> {
    while (this.#start === null && !signal.aborted) await this.#woken(this.#full, signal);
    if (signal.aborted) return;
    this.#level = false;
    try {
      await this.#fillFrom(this.#end(), signal);
    } catch (error) {
      this.#fault = error;
      throw error;
    }
  }

  async #fillFrom(after: Position, signal: AbortSignal): Promise<void> {
    const prefixes = this.#prefixes;
    for await (const message of this.#store.subscribe({ after, prefixes, signal })) {
      this.#fault = null;
      if (message.kind === 'events') this.#add(message.events);
      else this.#levelAt(message.position);
      wake(this.#thirsty);
      while (this.#ahead() > this.#retained && !signal.aborted)
        await this.#woken(this.#full, signal);
    }
  }

  /**
   * What comes after a place, as much as there is up to `limit` (a little more, never less than there is
   * of one delivery). Waits when there is nothing.
   *
   * @param reader whoever asks; takes part until it is told to leave
   * @param options.patience milliseconds to wait at most; default: for ever
   */
  async next(
    reader: object,
    position: Position,
    options: {
      readonly limit: number;
      readonly signal: AbortSignal;
      readonly patience?: number | undefined;
    },
  ): Promise<FeedPage> {
    const { limit, signal, patience } = options;
    const until = patience === undefined ? undefined : this.#clock.steady() + patience;
    for (;;) {
      if (signal.aborted) return { kind: 'stopped' };
      if (!this.holds(position)) return { kind: 'behind' };
      this.#joined(reader, this.#chunks[this.#indexAfter(position)]?.before ?? this.#delivered);
      // Only now: taking part may have let go of chunks that lie before everybody's place.
      const index = this.#indexAfter(position);
      if (index < this.#chunks.length) return this.#pageFrom(index, position, limit);
      if (!(await this.#woken(this.#thirsty, signal, until))) return { kind: 'quiet' };
    }
  }

  /**
   * Waits until so many events lie behind a place, or for a time, or until nothing comes any more: a reader that is in no
   * hurry then finds them together.
   * The feed reads on meanwhile, as what the reader has behind it holds nothing back.
   *
   * @param options.events as many as are enough
   * @param options.patience milliseconds to wait at most
   * @param options.quiet milliseconds without an event after which no more are waited for
   */
  async gather(
    reader: object,
    position: Position,
    options: {
      readonly events: number;
      readonly patience: number;
      readonly quiet: number;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const { events, patience, quiet, signal } = options;
    const until = this.#clock.steady() + patience;
    while (!signal.aborted && this.holds(position)) {
      const behind = this.#chunks[this.#indexAfter(position)]?.before ?? this.#delivered;
      this.#joined(reader, behind);
      if (this.#delivered - behind >= events) return;
      const quietAt = this.#clock.steady() + quiet;
      if (!(await this.#woken(this.#thirsty, signal, Math.min(until, quietAt)))) return;
    }
  }

  /** The reader takes no part for the time being: nobody waits for it. */
  leave(reader: object): void {
    if (!this.#readers.delete(reader)) return;
    this.#trim();
    wake(this.#full);
  }

  /** Index of the first chunk that goes beyond a place; the number of chunks where none does. */
  #indexAfter(position: Position): number {
    let index = this.#chunks.length;
    while (index > 0 && (this.#chunks[index - 1]?.upTo ?? '') > position) index -= 1;
    return index;
  }

  #pageFrom(index: number, position: Position, limit: number): FeedPage {
    const events: RecordedEvent[] = [];
    let upTo = position;
    for (const chunk of this.#chunks.slice(index)) {
      if (events.length > 0 && events.length + chunk.events.length > limit) break;
      // A reader that came by itself may stand in the midst of a delivery.
      for (const event of chunk.events) if (event.position > position) events.push(event);
      upTo = chunk.upTo;
    }
    return { kind: 'events', events, upTo };
  }

  #joined(reader: object, behind: number): void {
    const before = this.#readers.get(reader);
    this.#readers.set(reader, behind);
    if (before === behind) return;
    this.#trim();
    wake(this.#full);
  }

  #add(events: readonly RecordedEvent[]): void {
    const upTo = events.at(-1)?.position;
    if (upTo === undefined) return;
    this.#chunks.push({ upTo, events, before: this.#delivered });
    this.#delivered += events.length;
    this.#trim();
  }

  #levelAt(position: Position): void {
    this.#level = true;
    if (position <= this.#end()) return;
    const last = this.#chunks.at(-1);
    if (last) last.upTo = position;
    else this.#chunks.push({ upTo: position, events: [], before: this.#delivered });
  }

  #end(): Position {
    return this.#chunks.at(-1)?.upTo ?? this.#start ?? '';
  }

  /** How far the feed has read ahead of the slowest that takes part; of everything kept, where nobody does. */
  #ahead(): number {
    const kept = this.#chunks[0]?.before ?? this.#delivered;
    return (
      this.#delivered - (this.#readers.size === 0 ? kept : Math.min(...this.#readers.values()))
    );
  }

  #trim(): void {
    if (this.#readers.size === 0) return;
    const slowest = Math.min(...this.#readers.values());
    let drop = 0;
    for (const chunk of this.#chunks) {
      const after = chunk.before + chunk.events.length;
      // The last one stays: readers find the end by it.
      if (drop + 1 >= this.#chunks.length) break;
      if (after > slowest || this.#delivered - after < this.#retained) break;
      this.#start = chunk.upTo;
      drop += 1;
    }
    if (drop > 0) this.#chunks.splice(0, drop);
  }

  /** Resolves with true once woken (or stopped), with false when the time is over. @param until by `steady` */
  #woken(waiting: Set<() => void>, signal: AbortSignal, until?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (woken: boolean): void => {
        waiting.delete(wakeUp);
        signal.removeEventListener('abort', wakeUp);
        cancel?.();
        resolve(woken);
      };
      const wakeUp = (): void => end(true);
      const left = until === undefined ? undefined : until - this.#clock.steady();
      const cancel = left === undefined ? undefined : this.#clock.after(left, () => end(false));
      waiting.add(wakeUp);
      signal.addEventListener('abort', wakeUp, { once: true });
    });
  }
}

function wake(waiting: ReadonlySet<() => void>): void {
  for (const wakeUp of [...waiting]) wakeUp();
}
