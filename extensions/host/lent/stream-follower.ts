import type { EventStore, RecordedEvent } from '../../../domain/event-store.ts';
import { streamIdOf } from '../../../domain/topics/topic.ts';
import type { StreamEntry } from '../../contract.ts';

const PAGE = 200;

/** Entries that wait in memory for one who reads slowly; what is beyond is read from the log again. */
const MOST_WAITING = 500;

/** One who follows a stream: what the log has, then what comes, each entry once and in order. */
export class StreamFollower implements AsyncIterable<StreamEntry> {
  readonly #store: EventStore;
  readonly #name: string;
  readonly #stream: string;
  readonly #signal: AbortSignal;
  #next: number;
  #waiting: RecordedEvent[] = [];
  /** What stands in the log is not all in memory. */
  #behind = true;
  #wake: () => void = () => {};

  /** @param options.next revision of the first entry */
  constructor(options: {
    readonly store: EventStore;
    readonly name: string;
    readonly stream: string;
    readonly next: number;
    readonly signal: AbortSignal;
  }) {
    this.#store = options.store;
    this.#name = options.name;
    this.#stream = options.stream;
    this.#next = options.next;
    this.#signal = options.signal;
    this.#signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  /** Takes what has just been appended. */
  offer(events: readonly RecordedEvent[]): void {
    this.#waiting.push(...events);
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting = [];
      this.#behind = true;
    }
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEntry> {
    while (!this.#signal.aborted) {
      if (this.#behind) {
        this.#behind = false;
        // With what can't be read, which is left out: whoever failed on it would never come past it.
        const part = { from: this.#next, limit: PAGE, faulty: true };
        const page = await this.#store.readStream(this.#name, part);
        if (page.length === PAGE) this.#behind = true;
        yield* this.#take(page, true);
        continue;
      }
      const waiting = this.#waiting;
      this.#waiting = [];
      yield* this.#take(waiting, false);
      if (this.#waiting.length === 0 && !this.#behind && !this.#signal.aborted) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }

  /** @param whole nothing is missing between them: a gap is where the log was trimmed */
  *#take(events: readonly RecordedEvent[], whole: boolean): Generator<StreamEntry> {
    for (const event of events) {
      if (this.#signal.aborted) return;
      if (event.revision < this.#next) continue;
      if (event.revision > this.#next && !whole) {
        this.#behind = true;
        return;
      }
      this.#next = event.revision + 1;
      if (event.type !== 'StreamEntryAdded' || event.fault !== undefined) continue;
      const at = event.metadata.occurredAt;
      const id = streamIdOf(at, event.revision);
      yield { id, stream: this.#stream, data: event.data.data, at };
    }
  }
}
