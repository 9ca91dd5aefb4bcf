import type { RunState } from '../../../domain/vocabulary.ts';
import { requireTask, type LiveTask } from '../../../domain/tasks/task.ts';
import { reaches } from '../../../projections/reach.ts';
import { runListing, type RunListing } from '../../../projections/reading/run-queries.ts';
import type { RunDocument } from '../../../projections/views/runs.ts';
import type { Call } from '../../endpoint.ts';
import { forbidden } from '../../errors.ts';
import type { CancelRuns, RedriveRuns } from '../../schemas/run-retry-schemas.ts';
import { instantsOf, spanReader } from '../history/instant.ts';
import { mayChange, owns } from '../tasks/task-ownership.ts';
import { matcherOf, passes, showsInput } from './run-search.ts';

/** Selects the runs of a command for many runs. */
type Selection = RedriveRuns | CancelRuns;

type Calling = Pick<Call, 'caller' | 'dependencies' | 'reach' | 'own'>;

/** The present task of a run. @throws RefusalError `NOT_FOUND` */
export async function taskOf({ dependencies }: Calling, taskId: string): Promise<LiveTask> {
  return requireTask((await dependencies.tasks.get(taskId)).state);
}

/** @throws HttpError 403 for a selection that names another agent's tasks, except for admins */
export async function checkSelection(call: Calling, selection: Selection): Promise<void> {
  const { caller, dependencies } = call;
  const owner = selection.created_by?.toLowerCase();
  if (caller !== null && !caller.admin && owner !== undefined && owner !== caller.agentId) {
    throw forbidden("these are runs of another agent's tasks", ['admin'], caller.scopes);
  }
  if (selection.task_id === undefined) return;
  const id = selection.task_id.toLowerCase();
  const { state } = await dependencies.tasks.get(id);
  if (state.status === 'none' || !reaches(call.reach, state.namespace)) return;
  mayChange(call, id)(state);
}

/**
 * The runs in these states that may match a selection, oldest first. {@link meantBy} then leaves out the runs that do
 * not match.
 */
export async function selectionListing(
  call: Calling,
  { task_id, trigger, start_time, end_time }: Selection,
  states: readonly RunState[],
): Promise<RunListing> {
  const times = await instantsOf({ start_time, end_time }, spanReader(call, task_id));
  const filter = { task_id: task_id?.toLowerCase(), trigger, states, ...times };
  const listing = runListing(call.reach, filter);
  if (listing === null) throw new Error('a filter without `success` is never contradictory');
  const sort = listing.sort.map(({ field }) => ({ field, direction: 'ascending' as const }));
  return { filters: listing.filters, sort };
}

/**
 * Whether a selection includes a run of its list, or a run that it names. Named runs may be in any state. Runs of tasks
 * that the caller may not change are excluded.
 */
export function meantBy(
  call: Calling,
  selection: Selection,
  listing: RunListing,
): (run: RunDocument) => Promise<boolean> {
  const owner = selection.created_by?.toLowerCase();
  const { error, error_group, input, run_ids: named } = selection;
  const search = {
    error,
    error_group,
    input,
    id: selection.id?.toLowerCase(),
    event_id: selection.event_id?.toLowerCase(),
  };
  const matches = matcherOf(search);
  const others = listing.filters.filter(({ field }) => field !== 'state');
  const isMeant = (run: RunDocument): boolean =>
    matches(run) && (named === undefined || others.every((filter) => passes(run, filter)));
  return async (run) => {
    if (!isMeant(run) || !(await showsInput(call.dependencies, run, search))) return false;
    const task = await taskOf(call, run.task_id);
    return (owner === undefined || task.definition.created_by === owner) && owns(call)(task);
  };
}
