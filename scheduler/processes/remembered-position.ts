import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import { rememberedEventIn, rememberedText } from '../../domain/remembered-event.ts';
import type { Coordination } from '../coordination.ts';

/** Under which name the event is remembered by which the log of a remembered place is known. */
const eventOf = (name: string): string => `${name} event`;

/**
 * A remembered place in the log; its beginning where none is remembered, where the log does not reach that far, and where
 * it has never had the event that was remembered with the place: it is another one then, put back from a backup. Where
 * the event stands before the place, that of the event: between them none came.
 */
export async function recallPosition(
  coordination: Coordination,
  store: Pick<EventStore, 'reaches' | 'hasHad'>,
  name: string,
): Promise<Position> {
  const remembered = (await coordination.recall(name)) ?? BEGINNING;
  if (!(await store.reaches(remembered))) return BEGINNING;
  const place = rememberedEventIn(await coordination.recall(eventOf(name)));
  if (place === null) return remembered;
  if (!(await store.hasHad(place))) return BEGINNING;
  return place.position < remembered ? place.position : remembered;
}

/**
 * Remembers a place, and the last event that whoever follows was given, at it or anywhere; null: none yet.
 * @throws CoordinationError
 */
export async function rememberPosition(
  coordination: Coordination,
  name: string,
  position: Position,
  last: RecordedEvent | null,
  fence: number,
): Promise<void> {
  if (last !== null) {
    // First, so that no place is ever remembered with the event of another log.
    await coordination.remember(eventOf(name), rememberedText(last), fence);
  }
  await coordination.remember(name, position, fence);
}
