import {
  EventStoreError,
  type AppendResult,
  type EventStore,
  type Landmark,
  type ExpectedRevision,
  type NewEvent,
  type RecordedEvent,
  type StreamAppend,
} from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';

type Appending = { readonly stream: string; readonly events: readonly NewEvent[] };

/**
 * A log in memory, for tests of code that only appends and reads. `onAppend` may throw in place of the append, or delay
 * it. `afterAppend` may throw in place of the response, or delay it.
 */
export class MemoryLog implements EventStore {
  readonly streams = new Map<string, RecordedEvent[]>();
  /** The number of appends so far, including failed ones. */
  asked = 0;
  onAppend: (append: Appending, n: number) => void | Promise<void> = () => {};
  afterAppend: (append: Appending, n: number) => void | Promise<void> = () => {};
  readonly #codec = createEventCodec();
  #position = 0;

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    this.asked += 1;
    const n = this.asked;
    await this.onAppend({ stream, events }, n);
    const result = this.#write(stream, events, expected);
    await this.afterAppend({ stream, events }, n);
    return result;
  }

  #write(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): AppendResult {
    const kept = this.streams.get(stream) ?? [];
    const known = kept.find(({ id }) => id === events[0]?.id);
    if (known !== undefined) {
      const revision = known.revision + events.length - 1;
      return { revision, position: kept[revision]?.position ?? '', duplicate: true };
    }
    const actual = kept.length === 0 ? 'none' : kept.length - 1;
    if (expected !== 'any' && expected !== actual) {
      throw new EventStoreError('CONFLICT', 'elsewhere', { stream, expected, actual });
    }
    for (const event of events) {
      const encoded = this.#codec.encode(event);
      this.#position += 1;
      const position = String(this.#position).padStart(16, '0');
      const createdAt = event.metadata.occurredAt;
      const raw = { ...encoded, stream, revision: kept.length, position, createdAt };
      kept.push(this.#codec.decode(raw));
    }
    this.streams.set(stream, kept);
    const last = kept.at(-1);
    return { revision: kept.length - 1, position: last?.position ?? '', duplicate: false };
  }

  async appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    const results: AppendResult[] = [];
    for (const { stream, events, expected } of appends) {
      results.push(await this.append(stream, events, expected));
    }
    return results;
  }

  async readStream(
    stream: string,
    options: {
      readonly from?: number;
      readonly direction?: 'forwards' | 'backwards';
      readonly limit?: number;
    } = {},
  ): Promise<readonly RecordedEvent[]> {
    const kept = this.streams.get(stream) ?? [];
    const { from, direction = 'forwards', limit = 1000 } = options;
    return direction === 'forwards'
      ? kept.slice(from ?? 0, (from ?? 0) + limit)
      : kept
          .slice(0, (from ?? kept.length) + 1)
          .reverse()
          .slice(0, limit);
  }

  /** Types of a stream's events, in order. */
  typesOf(stream: string): readonly string[] {
    return (this.streams.get(stream) ?? []).map(({ type }) => type);
  }

  listStreams(): Promise<never> {
    return Promise.reject(new Error('not in this log'));
  }

  readAllBackwards(): Promise<never> {
    return Promise.reject(new Error('not in this log'));
  }

  readAll(): Promise<readonly RecordedEvent[]> {
    return Promise.reject(new Error('not in this log'));
  }

  subscribe(): AsyncGenerator<never> {
    throw new Error('not in this log');
  }

  truncate(): Promise<void> {
    return Promise.reject(new Error('not in this log'));
  }

  isPosition(text: string): boolean {
    return /^\d{16}$/.test(text);
  }

  async head(): Promise<string> {
    return String(this.#position).padStart(16, '0');
  }

  async reaches(position: string): Promise<boolean> {
    return position <= (await this.head());
  }

  async hasHad({ stream, revision, id }: Landmark): Promise<boolean> {
    return this.streams.get(stream)?.[revision]?.id === id;
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}
}

/** @param repeated as in {@link answerLost} */
export const unavailable = (repeated = false): Error =>
  new EventStoreError('UNAVAILABLE', 'the process died here', { repeated });

/** @param repeated whether the log itself has retried the append before it failed */
export const answerLost = (repeated = false): Error =>
  new EventStoreError('OUTCOME_UNKNOWN', 'the response was lost', { repeated });
