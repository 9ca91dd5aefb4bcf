import {
  BEGINNING,
  type AppendResult,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  type Position,
  type RecordedEvent,
  type StreamAppend,
  type StreamPage,
  type SubscriptionMessage,
} from '../../domain/event-store.ts';

/**
 * An event log for rehearsals: it holds what it was made with, takes every append and keeps none of them. Each goes the
 * way to the real log as far as that can be gone without a trace.
 */
export class RehearsalLog implements EventStore {
  readonly #real: Pick<EventStore, 'prepare' | 'rehearse'>;
  readonly #events: ReadonlyMap<string, RecordedEvent>;

  /** @param events the only ones of their streams */
  constructor(real: Pick<EventStore, 'prepare' | 'rehearse'>, events: readonly RecordedEvent[]) {
    this.#real = real;
    this.#events = new Map(events.map((event) => [event.stream, event]));
  }

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    const append = { stream, events, expected };
    await this.appendInOrder([append]);
    return resultOf(append);
  }

  async appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    await this.#real.rehearse?.(appends);
    const results: AppendResult[] = [];
    for (const append of appends) results.push(resultOf(append));
    return results;
  }

  prepare(events: readonly NewEvent[]): void {
    this.#real.prepare?.(events);
  }

  async readStream(stream: string): Promise<readonly RecordedEvent[]> {
    const event = this.#events.get(stream);
    return event === undefined ? [] : [event];
  }

  async readAll(): Promise<readonly RecordedEvent[]> {
    return [];
  }

  async readAllBackwards(): Promise<readonly RecordedEvent[]> {
    return [];
  }

  /** What it was made with, and nothing more. */
  async *subscribe({
    prefixes,
    signal,
  }: Parameters<EventStore['subscribe']>[0]): AsyncGenerator<SubscriptionMessage, void, undefined> {
    const events = [...this.#events.values()].filter(
      ({ stream }) => prefixes?.some((prefix) => stream.startsWith(prefix)) ?? true,
    );
    yield { kind: 'events', events };
    yield { kind: 'caught-up', position: events.at(-1)?.position ?? BEGINNING };
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  async listStreams(): Promise<StreamPage> {
    return { streams: [], next: null };
  }

  async truncate(): Promise<void> {}

  isPosition(): boolean {
    return false;
  }

  async head(): Promise<Position> {
    return BEGINNING;
  }

  async reaches(): Promise<boolean> {
    return true;
  }

  async hasHad(): Promise<boolean> {
    return true;
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}
}

/** As of a log in which each stream is where it was expected. */
function resultOf({ events, expected }: StreamAppend): AppendResult {
  const before = typeof expected === 'number' ? expected : -1;
  // Numbers that come from the thread which writes the log are of another kind to V8 than those that are counted here.
  const revision = Number(Float64Array.of(before + events.length)[0]);
  return { revision, position: BEGINNING, duplicate: false };
}
