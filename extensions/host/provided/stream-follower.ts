import type { EventStore, RecordedEvent } from '../../../domain/event-store.ts';
import { streamIdOf } from '../../../domain/topics/topic.ts';
import type { StreamEntry } from '../../contract.ts';

const PAGE_SIZE = 200;

/** Entries kept in memory for a slow reader; later ones are read from the log again. */
const MAX_WAITING_ENTRIES = 500;

export interface StreamFollowerOptions {
  readonly store: EventStore;
  /** Name of the stream in the log. */
  readonly name: string;
  /** Name of the stream for the extension. */
  readonly stream: string;
  /** Revision of the first entry. */
  readonly next: number;
  readonly signal: AbortSignal;
}

/** A follower of a stream: first the entries in the log, then new ones, each once and in order. */
export class StreamFollower implements AsyncIterable<StreamEntry> {
  readonly #options: StreamFollowerOptions;
  #next: number;
  #waiting: RecordedEvent[] = [];
  /** Whether entries must be read from the log. */
  #behind = true;
  #wake: () => void = () => {};

  constructor(options: StreamFollowerOptions) {
    this.#options = options;
    this.#next = options.next;
    options.signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  /** Adds new events. */
  offer(events: readonly RecordedEvent[]): void {
    this.#waiting.push(...events);
    if (this.#waiting.length > MAX_WAITING_ENTRIES) {
      this.#waiting = [];
      this.#behind = true;
    }
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEntry> {
    while (!this.#options.signal.aborted) {
      if (this.#behind) {
        this.#behind = false;
        // Includes unreadable events, which are skipped below. The follower would otherwise never get past them.
        const range = { from: this.#next, limit: PAGE_SIZE, faulty: true };
        const page = await this.#options.store.readStream(this.#options.name, range);
        if (page.length === PAGE_SIZE) this.#behind = true;
        yield* this.#entriesOf(page, true);
        continue;
      }
      const waiting = this.#waiting;
      this.#waiting = [];
      yield* this.#entriesOf(waiting, false);
      if (this.#waiting.length === 0 && !this.#behind && !this.#options.signal.aborted) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }

  /** @param whole whether the events have no gaps other than trimmed ones */
  *#entriesOf(events: readonly RecordedEvent[], whole: boolean): Generator<StreamEntry> {
    for (const event of events) {
      if (this.#options.signal.aborted) return;
      if (event.revision < this.#next) continue;
      if (event.revision > this.#next && !whole) {
        this.#behind = true;
        return;
      }
      this.#next = event.revision + 1;
      if (event.type !== 'StreamEntryAdded' || event.fault !== undefined) continue;
      const at = event.metadata.occurredAt;
      const id = streamIdOf(at, event.revision);
      yield { id, stream: this.#options.stream, data: event.data.data, at };
    }
  }
}
