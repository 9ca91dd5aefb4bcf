import {
  BEGINNING,
  type EventStore,
  type Landmark,
  type Position,
  type RecordedEvent,
} from './event-store.ts';
import { isJsonObject } from './json.ts';

/** An event, and where it stands: by it, who goes on from a remembered place knows the log that the place is in. */
export type RememberedEvent = Landmark &
  Pick<RecordedEvent, 'position'> & {
    /** The place that it was remembered for. */
    readonly place: Position;
  };

/** What remembers: the coordination port does. */
export interface Memory {
  recall(name: string): Promise<string | null>;
  remember(name: string, value: string, fence: number): Promise<unknown>;
}

/** Under which name the event is remembered by which the log of a remembered place is known. */
const eventOf = (name: string): string => `${name} event`;

/**
 * Where to go on from a remembered place; null where the log does not reach that far, and where it has never had the
 * event that was remembered for the place: it is another one then, put back from a backup. Where the event stands before
 * the place, that of the event: at a place where no event begins, as it may be in another log, EventStoreDB can't be
 * followed. A place that lies behind the one that the event was remembered for was moved on without it, by an older
 * release: what lies between is done.
 *
 * @throws EventStoreError `UNAVAILABLE`; what the memory throws
 */
export async function placeInLog(
  memory: Pick<Memory, 'recall'>,
  store: Pick<EventStore, 'reaches' | 'hasHad'>,
  name: string,
  place: Position,
): Promise<Position | null> {
  if (!(await store.reaches(place))) return null;
  const event = rememberedEventIn(await memory.recall(eventOf(name)));
  if (event === null) return place;
  if (!(await store.hasHad(event))) return null;
  return event.position < place && place <= event.place ? event.position : place;
}

/**
 * Remembers for a place the event by which its log is known: the last that whoever follows was given, where that stands
 * there, or else the last of the log up to there, so that none comes again. To be done first, so that no place is ever
 * remembered with the event of another log.
 *
 * @param last null: none came yet
 * @throws EventStoreError `UNAVAILABLE`; what the memory throws
 */
export async function rememberEvent(
  memory: Pick<Memory, 'remember'>,
  store: Pick<EventStore, 'readAll' | 'readAllBackwards'>,
  name: string,
  place: Position,
  last: RecordedEvent | null,
  fence: number,
): Promise<void> {
  if (place === BEGINNING) return;
  const event = last?.position === place ? last : ((await lastUpTo(place, store)) ?? last);
  if (event !== null) await memory.remember(eventOf(name), rememberedText(event, place), fence);
}

/** The last event that stands at a place or before it. */
async function lastUpTo(
  place: Position,
  store: Pick<EventStore, 'readAll' | 'readAllBackwards'>,
): Promise<RecordedEvent | undefined> {
  const [before] = await store.readAllBackwards(place, 1);
  const [next] = await store.readAll(before?.position ?? BEGINNING, 1);
  return next !== undefined && next.position <= place ? next : before;
}

/** As it is remembered; nothing of the event's data. */
function rememberedText(event: RecordedEvent, place: Position): string {
  const { stream, revision, id, createdAt, position } = event;
  const remembered: RememberedEvent = { stream, revision, id, createdAt, position, place };
  return JSON.stringify(remembered);
}

/** null for nothing, and for text that is of another release. */
function rememberedEventIn(text: string | null): RememberedEvent | null {
  const event: unknown = JSON.parse(text ?? 'null');
  if (!isJsonObject(event)) return null;
  const { stream, revision, id, createdAt, position, place } = event;
  const texts = [stream, id, createdAt, position, place];
  const isText = texts.every((each) => typeof each === 'string');
  return isText && typeof revision === 'number' ? (event as unknown as RememberedEvent) : null;
}
