import { EventStoreError, type Landmark } from '../../domain/event-store.ts';
import { truncatedBefore } from './truncation.ts';
import type { LogReader } from './log-reader.ts';

/**
 * Whether the log has, or had, an event; see the port. It looks in the event's stream, because servers report a
 * position in `$all` without an event as a general error.
 * @throws EventStoreError `UNAVAILABLE`
 */
export async function hasHad(reader: LogReader, landmark: Landmark): Promise<boolean> {
  const { stream, revision, id, createdAt } = landmark;
  try {
    const [there] = await reader.stream(stream, BigInt(revision), 'forwards', 1);
    if (there !== undefined && Number(there.revision) === revision) {
      return there.id === id && there.created.toISOString() === createdAt;
    }
    // Events before the stream's first one were truncated.
    if (there !== undefined) return true;
    const before = await truncatedBefore(reader, stream);
    return before !== undefined && before > revision;
  } catch (error) {
    // An operator deleted the stream for good, so nothing is known of its events.
    if (error instanceof EventStoreError && error.code === 'STREAM_DELETED') return true;
    throw error;
  }
}
