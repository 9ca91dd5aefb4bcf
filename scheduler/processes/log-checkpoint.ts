import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import { resumePosition, rememberLandmark } from '../../domain/log-landmark.ts';
import type { Coordination } from '../coordination.ts';

type CheckedLog = Pick<EventStore, 'reaches' | 'hasHad' | 'readAll' | 'readAllBackwards'>;

/** A named checkpoint in the log, stored with an event that identifies the log. */
export class LogCheckpoint {
  readonly #coordination: Coordination;
  readonly #store: CheckedLog;
  readonly #name: string;
  #last: RecordedEvent | null = null;

  constructor(coordination: Coordination, store: CheckedLog, name: string) {
    this.#coordination = coordination;
    this.#store = store;
    this.#name = name;
  }

  /**
   * Reads the position. It is the start of the log if none is stored, or if the stored one seems to belong to another
   * log.
   *
   * @throws CoordinationError; EventStoreError `UNAVAILABLE`
   */
  async load(): Promise<Position> {
    const stored = await this.#coordination.recall(this.#name);
    if (stored === null) return BEGINNING;
    return (await resumePosition(this.#coordination, this.#store, this.#name, stored)) ?? BEGINNING;
  }

  /** Notes that the follower of the log has received these events. */
  observe(events: readonly RecordedEvent[]): void {
    this.#last = events.at(-1) ?? this.#last;
  }

  /**
   * Stores a position, before or after the last received event.
   *
   * @throws CoordinationError; EventStoreError `UNAVAILABLE`
   */
  async save(position: Position, fence: number): Promise<void> {
    await rememberLandmark(
      this.#coordination,
      this.#store,
      this.#name,
      position,
      this.#last,
      fence,
    );
    await this.#coordination.remember(this.#name, position, fence);
  }
}
