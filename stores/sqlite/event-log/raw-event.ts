import type { RawEvent } from '../../../domain/event-store.ts';
import { formatPosition } from './position.ts';

/**
 * An event from its row: position, stream, revision, id, type, created_at, data, metadata.
 * @param typeOf the event type for the row's `type`
 */
export function rawEventOf(row: unknown, typeOf: (type: string | number) => string): RawEvent {
  const columns = row as readonly (string | number)[];
  return {
    position: formatPosition(Number(columns[0])),
    stream: String(columns[1]),
    revision: Number(columns[2]),
    id: String(columns[3]),
    type: typeOf(columns[4] ?? ''),
    createdAt: timestampOf(Number(columns[5])),
    data: String(columns[6]),
    metadata: String(columns[7]),
  };
}

let lastMilliseconds = Number.NaN;
let lastTimestamp = '';

/** A timestamp in ISO 8601. The last one is cached, as all events of a commit share it. */
export function timestampOf(milliseconds: number): string {
  if (milliseconds !== lastMilliseconds) {
    lastTimestamp = new Date(milliseconds).toISOString();
    lastMilliseconds = milliseconds;
  }
  return lastTimestamp;
}
