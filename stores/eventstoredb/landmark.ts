import { EventStoreError, type Landmark } from '../../domain/event-store.ts';
import { truncatedBefore } from './truncation.ts';
import type { Reading } from './reading.ts';

/**
 * Whether the log has an event, or has had it; see the port. It is asked for in its stream: a place in the whole log at
 * which no event begins, as it may be in another log, servers answer as they do where they are in trouble.
 *
 * @throws EventStoreError `UNAVAILABLE`
 */
export async function hasHad(reading: Reading, landmark: Landmark): Promise<boolean> {
  const { stream, revision, id, createdAt } = landmark;
  try {
    const [there] = await reading.stream(stream, BigInt(revision), 'forwards', 1);
    if (there !== undefined && Number(there.revision) === revision) {
      return there.id === id && there.created.toISOString() === createdAt;
    }
    // What begins behind it was cut off before, whether it is still in the whole log or not.
    if (there !== undefined) return true;
    const before = await truncatedBefore(reading, stream);
    return before !== undefined && before > revision;
  } catch (error) {
    // By an operator, for ever: of what was in it nothing is known.
    if (error instanceof EventStoreError && error.code === 'STREAM_DELETED') return true;
    throw error;
  }
}
