import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import { placeInLog, rememberEvent } from '../../domain/remembered-event.ts';
import type { Coordination } from '../coordination.ts';

/**
 * A remembered place in the log; its beginning where none is remembered, and where it is of another log, as far as that
 * can be told.
 */
export async function recallPosition(
  coordination: Coordination,
  store: Pick<EventStore, 'reaches' | 'hasHad'>,
  name: string,
): Promise<Position> {
  const remembered = await coordination.recall(name);
  if (remembered === null) return BEGINNING;
  return (await placeInLog(coordination, store, name, remembered)) ?? BEGINNING;
}

/**
 * Remembers a place, and an event by which its log is known.
 * @param last that whoever follows was given, at the place or anywhere; null: none yet
 * @throws CoordinationError; EventStoreError `UNAVAILABLE`
 */
export async function rememberPosition(
  coordination: Coordination,
  store: Pick<EventStore, 'readAllBackwards'>,
  name: string,
  position: Position,
  last: RecordedEvent | null,
  fence: number,
): Promise<void> {
  await rememberEvent(coordination, store, name, position, last, fence);
  await coordination.remember(name, position, fence);
}
