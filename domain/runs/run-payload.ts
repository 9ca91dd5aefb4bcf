import { Refusal } from '../errors.ts';
import { EventStoreError, type EventStore } from '../event-store.ts';
import { load } from '../handle.ts';
import type { JsonObject } from '../json.ts';
import { streams } from '../streams.ts';
import { taskAt } from '../tasks/task-at.ts';
import { hasEnded, runFold } from './run.ts';

/**
 * The payload of a started run's task, at the revision that the run is pinned to. Null for a run that never started,
 * has ended or does not exist; and where the task can't be read, because its runs must still be able to end.
 * @throws EventStoreError all that the log throws for the run, and `UNAVAILABLE` for the task
 */
export async function payloadOfStarted(
  store: EventStore,
  runId: string,
): Promise<JsonObject | null> {
  const { state } = await load(store, streams.run(runId), runFold);
  if (!('request' in state) || state.attempt === 0 || hasEnded(state)) return null;
  const { task_id, task_revision } = state.request;
  try {
    const { definition } = await taskAt(store, task_id, task_revision);
    return definition.payload as JsonObject;
  } catch (error) {
    const isUnreadable = error instanceof EventStoreError && error.code === 'CORRUPT_EVENT';
    if (isUnreadable || error instanceof Refusal) return null;
    throw error;
  }
}
