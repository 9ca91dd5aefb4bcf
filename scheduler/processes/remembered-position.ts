import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import { placeInLog, rememberEvent } from '../../domain/remembered-event.ts';
import type { Coordination } from '../coordination.ts';

type LogOfPlace = Pick<EventStore, 'reaches' | 'hasHad' | 'readAll' | 'readAllBackwards'>;

/** A place in the log that is remembered under a name, together with an event by which its log is known. */
export class RememberedPosition {
  readonly #coordination: Coordination;
  readonly #store: LogOfPlace;
  readonly #name: string;
  #last: RecordedEvent | null = null;

  constructor(coordination: Coordination, store: LogOfPlace, name: string) {
    this.#coordination = coordination;
    this.#store = store;
    this.#name = name;
  }

  /**
   * The place; the log's beginning where none is remembered, and where it is of another log, as far as that can be told.
   *
   * @throws CoordinationError; EventStoreError `UNAVAILABLE`
   */
  async recall(): Promise<Position> {
    const remembered = await this.#coordination.recall(this.#name);
    if (remembered === null) return BEGINNING;
    const place = await placeInLog(this.#coordination, this.#store, this.#name, remembered);
    return place ?? BEGINNING;
  }

  /** Whoever follows the log was given these events. */
  came(events: readonly RecordedEvent[]): void {
    this.#last = events.at(-1) ?? this.#last;
  }

  /**
   * Remembers a place, which may lie before what came last, or behind it.
   *
   * @throws CoordinationError; EventStoreError `UNAVAILABLE`
   */
  async remember(position: Position, fence: number): Promise<void> {
    await rememberEvent(this.#coordination, this.#store, this.#name, position, this.#last, fence);
    await this.#coordination.remember(this.#name, position, fence);
  }
}
