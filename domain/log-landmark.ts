import {
  BEGINNING,
  type EventStore,
  type Landmark,
  type Position,
  type RecordedEvent,
} from './event-store.ts';
import { isJsonObject } from './json.ts';

/** An event that proves, beside a stored checkpoint, which log the checkpoint belongs to. */
export type RememberedEvent = Landmark &
  Pick<RecordedEvent, 'position'> & {
    /** The checkpoint that it was remembered for. */
    readonly place: Position;
  };

/** The part of the coordination port that stores checkpoints. */
export interface Memory {
  recall(name: string): Promise<string | null>;
  remember(name: string, value: string, fence: number): Promise<unknown>;
}

/** The name under which the event of a checkpoint is remembered. */
const eventOf = (name: string): string => `${name} event`;

/**
 * The position from which to continue after a checkpoint. null if the log does not reach the checkpoint, or never had
 * the event remembered with it: then it is another log, restored from a backup. If that event lies before the
 * checkpoint, its position is used, because EventStoreDB cannot be followed from a position at which no event begins,
 * as in another log. If the checkpoint is beyond the one for which the event was remembered, an older release moved it,
 * and all events in between are done.
 *
 * @throws EventStoreError `UNAVAILABLE`; errors of the memory
 */
export async function resumePosition(
  memory: Pick<Memory, 'recall'>,
  store: Pick<EventStore, 'reaches' | 'hasHad'>,
  name: string,
  place: Position,
): Promise<Position | null> {
  if (!(await store.reaches(place))) return null;
  const event = parseEvent(await memory.recall(eventOf(name)));
  if (event === null) return place;
  if (!(await store.hasHad(event))) return null;
  return event.position < place && place <= event.place ? event.position : place;
}

/**
 * Remembers the event that identifies the log of a checkpoint: the last event delivered if it is at the checkpoint,
 * otherwise the last event of the log up to there. Call it before storing the checkpoint, so that no checkpoint is
 * paired with the event of another log.
 *
 * @param last the last event delivered; null for none yet
 * @throws EventStoreError `UNAVAILABLE`; errors of the memory
 */
export async function rememberLandmark(
  memory: Pick<Memory, 'remember'>,
  store: Pick<EventStore, 'readAll' | 'readAllBackwards'>,
  name: string,
  place: Position,
  last: RecordedEvent | null,
  fence: number,
): Promise<void> {
  if (place === BEGINNING) return;
  const event = last?.position === place ? last : ((await lastUpTo(place, store)) ?? last);
  if (event === null) return;
  const { stream, revision, id, createdAt, position } = event;
  const remembered: RememberedEvent = { stream, revision, id, createdAt, position, place };
  await memory.remember(eventOf(name), JSON.stringify(remembered), fence);
}

/** The last event at a position or before it. */
async function lastUpTo(
  place: Position,
  store: Pick<EventStore, 'readAll' | 'readAllBackwards'>,
): Promise<RecordedEvent | undefined> {
  const [before] = await store.readAllBackwards(place, 1);
  const [next] = await store.readAll(before?.position ?? BEGINNING, 1);
  return next !== undefined && next.position <= place ? next : before;
}

/** Null for nothing, and for a value of another release. */
function parseEvent(text: string | null): RememberedEvent | null {
  const event: unknown = JSON.parse(text ?? 'null');
  if (!isJsonObject(event)) return null;
  const { stream, revision, id, createdAt, position, place } = event;
  const strings = [stream, id, createdAt, position, place];
  const isComplete =
    typeof revision === 'number' && strings.every((each) => typeof each === 'string');
  return isComplete ? (event as unknown as RememberedEvent) : null;
}
