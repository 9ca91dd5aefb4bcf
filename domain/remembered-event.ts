import type { Landmark, RecordedEvent } from './event-store.ts';
import { isJsonObject } from './json.ts';

/** An event, and where it stands: by it, who goes on from a remembered place knows the log that the place is in. */
export type RememberedEvent = Landmark & Pick<RecordedEvent, 'position'>;

/** As it is remembered; nothing of the event's data. */
export function rememberedText({
  stream,
  revision,
  id,
  createdAt,
  position,
}: RecordedEvent): string {
  const remembered: RememberedEvent = { stream, revision, id, createdAt, position };
  return JSON.stringify(remembered);
}

/** null for nothing, and for text that is of another release. */
export function rememberedEventIn(text: string | null): RememberedEvent | null {
  const event: unknown = JSON.parse(text ?? 'null');
  if (!isJsonObject(event)) return null;
  const { stream, revision, id, createdAt, position } = event;
  const isText = [stream, id, createdAt, position].every((each) => typeof each === 'string');
  return isText && typeof revision === 'number' ? (event as unknown as RememberedEvent) : null;
}
