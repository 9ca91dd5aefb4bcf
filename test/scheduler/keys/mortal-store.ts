import type {
  AppendResult,
  EventStore,
  ExpectedRevision,
  NewEvent,
  RecordedEvent,
} from '../../../domain/event-store.ts';

/** A process's connection to the log. After the process has crashed, no call returns. */
export class MortalStore implements EventStore {
  readonly #store: EventStore;
  #left = Number.POSITIVE_INFINITY;
  #when: 'before' | 'after' = 'before';
  #untilPause = Number.POSITIVE_INFINITY;
  #pause: Promise<void> = Promise.resolve();
  #paused: (() => void) | undefined;
  /** Appends of this process so far. */
  appends = 0;
  readonly cuts: { readonly stream: string; readonly before: number }[] = [];
  dead = false;
  onDeath: () => void = () => {};

  constructor(store: EventStore) {
    this.#store = store;
  }

  /** Crashes at the n-th append from now, before or after it is written. */
  dieAt(append: number, when: 'before' | 'after'): void {
    this.#left = append;
    this.#when = when;
  }

  /**
   * Pauses before the n-th append from now, until the promise has resolved.
   * @returns resolves when it has come to that append
   */
  pauseAt(append: number, until: Promise<void>): Promise<void> {
    this.#untilPause = append;
    return new Promise((resolve) => {
      this.#paused = () => {
        this.#pause = until;
        resolve();
      };
    });
  }

  die(): void {
    if (this.dead) return;
    this.dead = true;
    this.onDeath();
  }

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    this.appends += 1;
    this.#left -= 1;
    const last = this.#left === 0;
    this.#untilPause -= 1;
    if (this.#untilPause === 0) this.#paused?.();
    if (this.#untilPause <= 0) await this.#pause;
    if (last && this.#when === 'before') this.die();
    await this.#living();
    const result = await this.#store.append(stream, events, expected);
    if (last) this.die();
    await this.#living();
    return result;
  }

  async appendInOrder(
    appends: Parameters<EventStore['appendInOrder']>[0],
  ): Promise<readonly AppendResult[]> {
    const results: AppendResult[] = [];
    for (const { stream, events, expected } of appends) {
      results.push(await this.append(stream, events, expected));
    }
    return results;
  }

  async readStream(
    ...given: Parameters<EventStore['readStream']>
  ): Promise<readonly RecordedEvent[]> {
    await this.#living();
    return this.#store.readStream(...given);
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
    return this.#store.readAll(...given);
  }

  subscribe(...given: Parameters<EventStore['subscribe']>): ReturnType<EventStore['subscribe']> {
    return this.#store.subscribe(...given);
  }

  /** Only notes the call, because tests read the whole log. */
  truncate(stream: string, before: number): Promise<void> {
    this.cuts.push({ stream, before });
    return Promise.resolve();
  }

  isPosition(text: string): boolean {
    return this.#store.isPosition(text);
  }

  head(): Promise<string> {
    return this.#store.head();
  }

  reaches(position: string): Promise<boolean> {
    return this.#store.reaches(position);
  }

  hasHad(...given: Parameters<EventStore['hasHad']>): Promise<boolean> {
    return this.#store.hasHad(...given);
  }

  ping(): Promise<void> {
    return this.#store.ping();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #living(): Promise<void> {
    if (this.dead) await new Promise<never>(() => {});
  }
}
