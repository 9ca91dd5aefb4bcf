import { randomUUID } from 'node:crypto';
import { EventStoreError, isConflict, type ExpectedRevision } from '../../domain/event-store.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { Appender } from './appender.ts';
import type { LogReader } from './log-reader.ts';

/** The metadata field that truncates a stream before a revision. */
const TRUNCATE_BEFORE = '$tb';

/** Attempts while others change the same stream's metadata. */
const ATTEMPTS = 5;

/**
 * Truncates a stream through its metadata, and keeps the other fields. Never moves backwards or beyond the last event:
 * a `$tb` past the end would hide the next events. The client's own method is not used. It drops unknown metadata, and
 * reports the commit position as the revision, so concurrent writers could not see each other.
 * @throws EventStoreError `UNAVAILABLE`, `STREAM_DELETED`, `CONFLICT` after several lost races
 */
export async function truncateStream(
  reader: LogReader,
  appender: Appender,
  stream: string,
  before: number,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const change = await planChange(reader, stream, before);
    if (change === undefined) return;
    const event = {
      id: randomUUID(),
      type: '$metadata',
      data: JSON.stringify(change.metadata),
      metadata: '{}',
    };
    try {
      await appender.append(metadataStreamOf(stream), [event], change.expected);
      return;
    } catch (error) {
      if (!isConflict(error) || attempt === ATTEMPTS) throw error;
    }
  }
}

/**
 * The revision before which a stream is truncated, from its metadata, which outlives its events.
 * @throws EventStoreError `UNAVAILABLE`, `STREAM_DELETED`
 */
export async function truncatedBefore(
  reader: LogReader,
  stream: string,
): Promise<number | undefined> {
  const [present] = await reader.stream(metadataStreamOf(stream), 'end', 'backwards', 1);
  const before = isJsonObject(present?.data) ? present.data[TRUNCATE_BEFORE] : undefined;
  return typeof before === 'number' ? before : undefined;
}

/** The new metadata, or undefined if the stream is already short enough. */
async function planChange(
  reader: LogReader,
  stream: string,
  before: number,
): Promise<{ metadata: JsonObject; expected: ExpectedRevision } | undefined> {
  const [last] = await reader.stream(stream, 'end', 'backwards', 1);
  if (last === undefined) return undefined;
  const target = Math.min(before, Number(last.revision) + 1);
  const [present] = await reader.stream(metadataStreamOf(stream), 'end', 'backwards', 1);
  if (present === undefined) {
    return target <= 0 ? undefined : { metadata: { [TRUNCATE_BEFORE]: target }, expected: 'none' };
  }
  const metadata = objectOf(present.data, stream);
  const truncated = metadata[TRUNCATE_BEFORE];
  if (target <= (typeof truncated === 'number' ? truncated : 0)) return undefined;
  return {
    metadata: { ...metadata, [TRUNCATE_BEFORE]: target },
    expected: Number(present.revision),
  };
}

function objectOf(data: unknown, stream: string): JsonObject {
  if (isJsonObject(data)) return data;
  const text = `the metadata of stream ${stream} is not a JSON object`;
  throw new EventStoreError('CORRUPT_EVENT', text, { stream });
}

/** The stream that holds a stream's metadata. */
function metadataStreamOf(stream: string): string {
  return `$$${stream}`;
}
