import type { Clock } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';

export type FeedPage =
  /** Everything up to `upTo`; without events if only other views' streams moved. */
  | { readonly kind: 'events'; readonly events: readonly RecordedEvent[]; readonly upTo: Position }
  /** The reader is before the window, or the feed has not begun: it has to read by itself. */
  | { readonly kind: 'behind' }
  /** Nothing came within the reader's patience. */
  | { readonly kind: 'quiet' }
  | { readonly kind: 'stopped' };

interface Chunk {
  upTo: Position;
  readonly events: readonly RecordedEvent[];
  readonly before: number;
}

/**
 * One subscription for all views that are level, so that each event is read and parsed once. It holds a window of
 * recent events in memory. The slowest participating reader holds the source back. A reader that leaves holds back
 * nobody, and has to read by itself until it is within the window again.
 */
export class SharedFeed {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #prefixes: readonly string[];
  readonly #retained: number;
  readonly #chunks: Chunk[] = [];
  /** By reader: how many of the feed's events it has passed. */
  readonly #readers = new Map<object, number>();
  readonly #waitingReaders = new Set<() => void>();
  /** The filling, waiting for room or for its start. */
  readonly #waitingFill = new Set<() => void>();
  #start: Position | null = null;
  #delivered = 0;
  #level = false;
  #fault: unknown = null;

  /** @param retained events kept for readers that come back, and read ahead of the slowest one: one batch */
  constructor(store: EventStore, clock: Clock, prefixes: readonly string[], retained: number) {
    this.#store = store;
    this.#clock = clock;
    this.#prefixes = prefixes;
    this.#retained = retained;
  }

  begin(after: Position): void {
    if (this.#start !== null) return;
    this.#start = after;
    wake(this.#waitingFill);
    wake(this.#waitingReaders);
  }

  /** Whether a reader at this position is within the window. */
  holds(position: Position): boolean {
    return this.#start !== null && position >= this.#start;
  }

  /** Whether a reader at this position has everything that is in the log. */
  isLevelAt(position: Position): boolean {
    return this.#level && position >= this.#end();
  }

  /** The error that ended the last filling; null once events come again. */
  get fault(): unknown {
    return this.#fault;
  }

  /**
   * Reads the log into the window until the signal is aborted. After an error, call it again to go on.
   * @throws EventStoreError `NEWER_SCHEMA`, or what the store could not recover from
   */
  async fill(signal: AbortSignal): Promise<void> {
    while (this.#start === null && !signal.aborted) await this.#woken(this.#waitingFill, signal);
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
      wake(this.#waitingReaders);
      while (this.#ahead() > this.#retained && !signal.aborted)
        await this.#woken(this.#waitingFill, signal);
    }
  }

  /**
   * The events after a position, about `limit` of them; waits while there are none.
   *
   * @param reader takes part until it leaves
   * @param options.patience milliseconds to wait at most; default: unlimited
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
      this.#join(reader, this.#chunks[this.#indexAfter(position)]?.before ?? this.#delivered);
      // Only now: joining may have dropped chunks before all readers.
      const index = this.#indexAfter(position);
      if (index < this.#chunks.length) return this.#pageFrom(index, position, limit);
      if (!(await this.#woken(this.#waitingReaders, signal, until))) return { kind: 'quiet' };
    }
  }

  /**
   * Waits until enough events follow a position, or the time is over, or no more come, so that a reader takes them
   * together. The feed reads on meanwhile.
   *
   * @param options.events how many are enough
   * @param options.patience milliseconds to wait at most
   * @param options.quiet milliseconds without an event after which it stops waiting
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
      this.#join(reader, behind);
      if (this.#delivered - behind >= events) return;
      const quietAt = this.#clock.steady() + quiet;
      if (!(await this.#woken(this.#waitingReaders, signal, Math.min(until, quietAt)))) return;
    }
  }

  /** The reader no longer takes part: nobody waits for it. */
  leave(reader: object): void {
    if (!this.#readers.delete(reader)) return;
    this.#trim();
    wake(this.#waitingFill);
  }

  /** Index of the first chunk beyond a position; the number of chunks if there is none. */
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
      // A reader that has read by itself may be in the middle of a chunk.
      for (const event of chunk.events) if (event.position > position) events.push(event);
      upTo = chunk.upTo;
    }
    return { kind: 'events', events, upTo };
  }

  #join(reader: object, behind: number): void {
    const before = this.#readers.get(reader);
    this.#readers.set(reader, behind);
    if (before === behind) return;
    this.#trim();
    wake(this.#waitingFill);
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

  /** How far the feed is ahead of the slowest reader; of everything kept, if there is none. */
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
      // The last one stays: it marks the end.
      if (drop + 1 >= this.#chunks.length) break;
      if (after > slowest || this.#delivered - after < this.#retained) break;
      this.#start = chunk.upTo;
      drop += 1;
    }
    if (drop > 0) this.#chunks.splice(0, drop);
  }

  /** Resolves with true once woken or stopped, with false when the time is over. @param until by `steady` */
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
