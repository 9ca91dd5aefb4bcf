import { randomUUID } from 'node:crypto';
import { EventStoreError, isConflict, type ExpectedRevision } from '../../domain/event-store.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { Appending } from './appending.ts';
import type { Reading } from './reading.ts';

/** The engine's name for "events before this revision are gone", in a stream's metadata. */
export const TRUNCATE_BEFORE = '$tb';

/** How often a truncation is tried while others change the same stream's metadata. */
const ATTEMPTS = 5;

/**
 * Truncates a stream by its metadata, keeping what else stands there (access lists, limits). Never
 * moves backwards, and never beyond the stream's last event: `$tb` past the end would hide the events
 * that come next. The client's own way is not used: it drops metadata it does not know, and gives the
 * commit position for the metadata's revision, so that two writers could not see each other.
 *
 * @throws EventStoreError `UNAVAILABLE`, `STREAM_DELETED`, `CONFLICT` after several lost races
 */
export async function truncateStream(
  reading: Reading,
  appending: Appending,
  stream: string,
  before: number,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const change = await planChange(reading, stream, before);
    if (change === undefined) return;
    const event = {
      id: randomUUID(),
      type: '$metadata',
      data: JSON.stringify(change.metadata),
      metadata: '{}',
    };
    try {
      await appending.append(metadataStreamOf(stream), [event], change.expected);
      return;
    } catch (error) {
      if (!isConflict(error) || attempt === ATTEMPTS) throw error;
    }
  }
}

/**
 * The revision before which a stream is truncated, as its metadata say, which outlive all of its events.
 * @throws EventStoreError `UNAVAILABLE`, `STREAM_DELETED`
 */
export async function truncatedBefore(
  reading: Reading,
  stream: string,
): Promise<number | undefined> {
  const [present] = await reading.stream(metadataStreamOf(stream), 'end', 'backwards', 1);
  const before = isJsonObject(present?.data) ? present.data[TRUNCATE_BEFORE] : undefined;
  return typeof before === 'number' ? before : undefined;
}

/** What the metadata must become, or nothing where the stream is short enough already. */
async function planChange(
  reading: Reading,
  stream: string,
  before: number,
): Promise<{ metadata: JsonObject; expected: ExpectedRevision } | undefined> {
  const [last] = await reading.stream(stream, 'end', 'backwards', 1);
  if (last === undefined) return undefined;
  const target = Math.min(before, Number(last.revision) + 1);
  const [present] = await reading.stream(metadataStreamOf(stream), 'end', 'backwards', 1);
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
  throw new EventStoreError('CORRUPT_EVENT', `The metadata of stream ${stream} is no JSON object`, {
    stream,
  });
}

/** Where a stream's metadata are. */
export function metadataStreamOf(stream: string): string {
  return `$$${stream}`;
}
