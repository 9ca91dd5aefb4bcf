import type { EventStore } from '../event-store.ts';
import { load } from '../handle.ts';
import type { JsonObject } from '../json.ts';
import { streams } from '../streams.ts';
import { taskAt } from '../tasks/task-at.ts';
import { hasEnded, runFold } from './run.ts';

/**
 * What is executed by a run that has begun: the payload of its task, at the revision that the run is pinned to. Null for
 * one that never began, has ended, or is none, of which nobody has to know it.
 * @throws EventStoreError all that the log throws; Refusal `NOT_FOUND` of its task
 */
export async function payloadOfBegun(store: EventStore, runId: string): Promise<JsonObject | null> {
  const { state } = await load(store, streams.run(runId), runFold);
  if (!('request' in state) || state.attempt === 0 || hasEnded(state)) return null;
  const { task_id, task_revision } = state.request;
  const { definition } = await taskAt(store, task_id, task_revision);
  return definition.payload as JsonObject;
}
