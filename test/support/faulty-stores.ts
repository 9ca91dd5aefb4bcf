import { decorate } from '../../domain/decorate.ts';
import {
  EventStoreError,
  type AppendResult,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
} from '../../domain/event-store.ts';
import { ReadModelError, type Projection, type ReadModel } from '../../projections/read-model.ts';
import { deferred, type Deferred } from './signals.ts';

type Appending = readonly [stream: string, events: readonly NewEvent[]];

interface PlannedFault {
  readonly fits: (stream: string, events: readonly NewEvent[]) => boolean;
  /**
   * `before`: nothing is written; `after`: it is, but the response is lost; `race`: another writer
   * won.
   */
  readonly when: 'before' | 'after' | 'race';
}

/** A held append: it was received, and continues once it is released. */
export interface HeldAppend {
  readonly arrived: Promise<void>;
  release(): void;
}

/** An event store in front of another that fails, waits or is unavailable on request. */
export class FaultyEventStore implements EventStore {
  /** Every call is rejected as `UNAVAILABLE`. */
  away = false;
  /** Streams appended to through this store, in order. */
  readonly appended: string[] = [];
  readonly #store: EventStore;
  #faults: PlannedFault[] = [];
  #held: {
    readonly fits: PlannedFault['fits'];
    readonly gate: Deferred<void>;
    readonly arrived: Deferred<void>;
  }[] = [];

  constructor(store: EventStore) {
    this.#store = store;
  }

  /** The next append to a stream with this prefix fails once, as if the process died there. */
  failNext(prefix: string, when: PlannedFault['when'] = 'before', type?: string): void {
    this.#faults.push({ fits: fitting(prefix, type), when });
  }

  /** The next append to a stream with this prefix waits until it is released. */
  holdNext(prefix: string, type?: string): HeldAppend {
    const held = { fits: fitting(prefix, type), gate: deferred(), arrived: deferred() };
    this.#held.push(held);
    return { arrived: held.arrived.promise, release: () => held.gate.resolve() };
  }

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    this.#require();
    await this.#hold([stream, events]);
    const fault = this.#faults.find(({ fits }) => fits(stream, events));
    this.#faults = this.#faults.filter((each) => each !== fault);
    if (fault?.when === 'before') throw away();
    if (fault?.when === 'race') throw new EventStoreError('CONFLICT', 'another writer was faster');
    const result = await this.#store.append(stream, events, expected);
    if (fault?.when === 'after') throw away();
    this.appended.push(stream);
    return result;
  }

  async #hold([stream, events]: Appending): Promise<void> {
    const held = this.#held.find(({ fits }) => fits(stream, events));
    if (held === undefined) return;
    this.#held = this.#held.filter((each) => each !== held);
    held.arrived.resolve();
    await held.gate.promise;
  }

  async appendInOrder(
    ...given: Parameters<EventStore['appendInOrder']>
  ): ReturnType<EventStore['appendInOrder']> {
    this.#require();
    return this.#store.appendInOrder(...given);
  }

  async readStream(
    ...given: Parameters<EventStore['readStream']>
  ): ReturnType<EventStore['readStream']> {
    this.#require();
    return this.#store.readStream(...given);
  }

  async listStreams(
    ...given: Parameters<EventStore['listStreams']>
  ): ReturnType<EventStore['listStreams']> {
    this.#require();
    return this.#store.listStreams(...given);
  }

  async readAllBackwards(
    ...given: Parameters<EventStore['readAllBackwards']>
  ): ReturnType<EventStore['readAllBackwards']> {
    this.#require();
    return this.#store.readAllBackwards(...given);
  }

  async readAll(...given: Parameters<EventStore['readAll']>): ReturnType<EventStore['readAll']> {
    this.#require();
    return this.#store.readAll(...given);
  }

  subscribe(...given: Parameters<EventStore['subscribe']>): ReturnType<EventStore['subscribe']> {
    return this.#store.subscribe(...given);
  }

  async truncate(...given: Parameters<EventStore['truncate']>): Promise<void> {
    this.#require();
    return this.#store.truncate(...given);
  }

  isPosition(text: string): boolean {
    return this.#store.isPosition(text);
  }

  async head(): Promise<string> {
    this.#require();
    return this.#store.head();
  }

  async reaches(position: string): Promise<boolean> {
    this.#require();
    return this.#store.reaches(position);
  }

  async hasHad(...given: Parameters<EventStore['hasHad']>): Promise<boolean> {
    this.#require();
    return this.#store.hasHad(...given);
  }

  async ping(): Promise<void> {
    this.#require();
    return this.#store.ping();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #require(): void {
    if (this.away) throw away();
  }
}

function fitting(prefix: string, type: string | undefined): PlannedFault['fits'] {
  return (stream, events) =>
    stream.startsWith(prefix) && (type === undefined || events[0]?.type === type);
}

const away = (): EventStoreError => new EventStoreError('UNAVAILABLE', 'the log is unavailable');

/** A read model in front of another, whose reads become unavailable on request. */
export function faultyReadModel(readModel: ReadModel, state: { away: boolean }): ReadModel {
  const guarded =
    <A extends readonly unknown[], R>(call: (...given: A) => Promise<R>) =>
    async (...given: A): Promise<R> => {
      if (state.away) throw new ReadModelError('UNAVAILABLE', 'the views are unavailable');
      return call(...given);
    };
  return decorate(readModel, {
    get: guarded((projection: Projection, key: string) =>
      readModel.get(projection, key),
    ) as ReadModel['get'],
    find: guarded((projection: Projection, query) =>
      readModel.find(projection, query),
    ) as ReadModel['find'],
    count: guarded((projection: Projection, filters) =>
      readModel.count(projection, filters),
    ) as ReadModel['count'],
    values: guarded((projection: Projection, query) => readModel.values(projection, query)),
    list: guarded((projection: Projection, query) => readModel.list(projection, query)),
    checkpoint: guarded((projection: Projection) => readModel.checkpoint(projection)),
  });
}
