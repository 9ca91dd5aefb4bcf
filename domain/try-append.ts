import {
  isConflict,
  type AppendResult,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
} from './event-store.ts';

/** Appends events; null if the stream is not at the expected revision. @throws EventStoreError other errors */
export async function tryAppend(
  store: EventStore,
  stream: string,
  events: readonly NewEvent[],
  expected: ExpectedRevision,
): Promise<AppendResult | null> {
  try {
    return await store.append(stream, events, expected);
  } catch (error) {
    if (isConflict(error)) return null;
    throw error;
  }
}
