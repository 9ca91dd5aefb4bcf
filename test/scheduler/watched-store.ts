import type {
  AppendResult,
  EventStore,
  ExpectedRevision,
  NewEvent,
  Position,
  RecordedEvent,
  StreamAppend,
  SubscriptionMessage,
} from '../../domain/event-store.ts';

/** A process's connection to the log. It knows pending calls, and may die; then no call returns. */
export class WatchedStore implements EventStore {
  dead = false;
  /** Called before each append; may throw, or let the process die by setting `dead`. */
  onAppend: (stream: string, events: readonly NewEvent[]) => Promise<void> | void = () => {};
  /** Called after each append, before its response; may throw, which loses the response. */
  afterAppend: (stream: string, events: readonly NewEvent[]) => Promise<void> | void = () => {};
  /** Called before each read of a stream; may throw. */
  onRead: (stream: string) => void = () => {};
  /** Called before each message of a subscription; may throw, which ends it. */
  onMessage: (message: SubscriptionMessage, prefixes: readonly string[]) => Promise<void> | void =
    () => {};
  underWay = 0;
  readonly following = new Set<{ passed: Position }>();
  readonly #store: EventStore;

  constructor(store: EventStore) {
    this.#store = store;
  }

  /** Lets the process die at the n-th append from now: before it is written, or after. */
  dieAt(append: number, when: 'before' | 'after'): void {
    let asked = 0;
    let last: unknown;
    this.onAppend = (_, events) => {
      asked += 1;
      if (asked === append) last = events;
      if (asked === append && when === 'before') this.dead = true;
    };
    this.afterAppend = (_, events) => {
      if (events === last && when === 'after') this.dead = true;
    };
  }

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    return this.#watched(async () => {
      await this.onAppend(stream, events);
      await this.#living();
      const result = await this.#store.append(stream, events, expected);
      await this.afterAppend(stream, events);
      return result;
    });
  }

  /** One after the other, so that a process can die in between. */
  async appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    const results: AppendResult[] = [];
    for (const { stream, events, expected } of appends) {
      results.push(await this.append(stream, events, expected));
    }
    return results;
  }

  readStream(...given: Parameters<EventStore['readStream']>): Promise<readonly RecordedEvent[]> {
    return this.#watched(() => {
      this.onRead(given[0]);
      return this.#store.readStream(...given);
    });
  }

  listStreams(
    ...given: Parameters<EventStore['listStreams']>
  ): ReturnType<EventStore['listStreams']> {
    return this.#store.listStreams(...given);
  }

  readAllBackwards(
    ...given: Parameters<EventStore['readAllBackwards']>
  ): ReturnType<EventStore['readAllBackwards']> {
    return this.#store.readAllBackwards(...given);
  }

  readAll(...given: Parameters<EventStore['readAll']>): Promise<readonly RecordedEvent[]> {
    return this.#watched(() => this.#store.readAll(...given));
  }

  async *subscribe(
    options: Parameters<EventStore['subscribe']>[0],
  ): AsyncGenerator<SubscriptionMessage> {
    const place = { passed: options.after };
    this.following.add(place);
    try {
      for await (const message of this.#store.subscribe(options)) {
        await this.onMessage(message, options.prefixes ?? []);
        yield message;
        // Only now has the follower processed it.
        place.passed =
          message.kind === 'caught-up'
            ? message.position
            : (message.events.at(-1)?.position ?? place.passed);
      }
    } finally {
      this.following.delete(place);
    }
  }

  truncate(...given: Parameters<EventStore['truncate']>): Promise<void> {
    return this.#store.truncate(...given);
  }

  isPosition(text: string): boolean {
    return this.#store.isPosition(text);
  }

  head(): Promise<Position> {
    return this.#watched(() => this.#store.head());
  }

  reaches(position: Position): Promise<boolean> {
    return this.#watched(() => this.#store.reaches(position));
  }

  hasHad(...given: Parameters<EventStore['hasHad']>): Promise<boolean> {
    return this.#watched(() => this.#store.hasHad(...given));
  }

  ping(): Promise<void> {
    return this.#store.ping();
  }

  async close(): Promise<void> {}

  async #watched<T>(work: () => Promise<T>): Promise<T> {
    this.underWay += 1;
    try {
      await this.#living();
      const result = await work();
      await this.#living();
      return result;
    } finally {
      this.underWay -= 1;
    }
  }

  async #living(): Promise<void> {
    if (this.dead) await new Promise<never>(() => {});
  }
}
