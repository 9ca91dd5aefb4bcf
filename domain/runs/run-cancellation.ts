import { RefusalError } from '../errors.ts';
import { EventStoreError, type EventStore } from '../event-store.ts';
import { handle, load, type CommandContext, type Handled } from '../handle.ts';
import type { JsonObject } from '../json.ts';
import { streams } from '../streams.ts';
import { taskAt } from '../tasks/task-at.ts';
import { cancelRun, hasEnded, runFold, type RunState } from './run.ts';

/**
 * The payload of a started run's task, at the revision that the run is pinned to. Null for a run that never started,
 * has ended or does not exist. Also null if the task cannot be read, because its runs must still be able to end.
 * @throws EventStoreError all errors of the log for the run, and `UNAVAILABLE` for the task
 */
async function payloadOfStarted(store: EventStore, runId: string): Promise<JsonObject | null> {
  const { state } = await load(store, streams.run(runId), runFold);
  if (!('request' in state) || state.attempt === 0 || hasEnded(state)) return null;
  const { task_id, task_revision } = state.request;
  try {
    const { definition } = await taskAt(store, task_id, task_revision);
    return definition.payload as JsonObject;
  } catch (error) {
    const isUnreadable = error instanceof EventStoreError && error.code === 'CORRUPT_EVENT';
    if (isUnreadable || error instanceof RefusalError) return null;
    throw error;
  }
}

/**
 * Cancels a run that no worker has, or requests the cancellation of a running one.
 * @throws RefusalError `STATE_CONFLICT` if the run has ended otherwise, `NOT_FOUND`
 */
export async function cancelRunIn(
  store: EventStore,
  runId: string,
  context: CommandContext,
): Promise<Handled<RunState>> {
  const payload = await payloadOfStarted(store, runId);
  const decide = (run: RunState) => cancelRun(run, payload);
  return handle({ store, stream: streams.run(runId), fold: runFold, decide, context });
}
