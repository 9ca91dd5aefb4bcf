import type { Instant } from '../../../domain/clock.ts';
import { load } from '../../../domain/handle.ts';
import { operationsFold, type HoldOrder } from '../../../domain/operators/operations.ts';
import { streams } from '../../../domain/streams.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import type { Stores } from '../../stores.ts';
import { currentSchedules } from './current-schedules.ts';
import { policies, taskBacklog, type TaskBacklog } from './task-backlog.ts';

/** Tasks that are listed. */
const MAX_LISTED = 20;

/** The backlog of all tasks: nominal times that are due and undecided. */
export interface BacklogSummary {
  readonly hold: HoldOrder | null;
  readonly tasks: number;
  readonly fires: number;
  /** Runs that a release would start, by its policy. */
  readonly runs: TaskBacklog['runs'];
  /** The largest backlogs. */
  readonly most: readonly (TaskBacklog & { readonly title: string | null })[];
}

/**
 * Sums the backlogs of all tasks at an instant; memory holds only the largest.
 * @throws the stores' errors; InterruptedError when the signal aborts
 */
export async function readBacklog(
  { store, readModel }: Stores,
  now: Instant,
  signal: AbortSignal,
): Promise<BacklogSummary> {
  const { hold } = (await load(store, streams.operations(), operationsFold)).state;
  const runs = { own: 0, skip: 0, latest: 0, all: 0 };
  let [tasks, fires] = [0, 0];
  let largest: TaskBacklog[] = [];
  for await (const { taskId, state: schedule } of currentSchedules(store, readModel, signal)) {
    const backlog = taskBacklog(taskId, schedule, now);
    if (backlog === null) continue;
    tasks += 1;
    fires += backlog.count;
    for (const policy of policies) runs[policy] += backlog.runs[policy];
    largest.push(backlog);
    if (largest.length > 4 * MAX_LISTED) largest = largestOf(largest);
  }
  const most = [];
  for (const each of largestOf(largest)) {
    // From the log, because a restored one has no views yet.
    const { state } = await load(store, streams.task(each.task_id), taskFold);
    most.push({ ...each, title: 'definition' in state ? state.definition.title : null });
  }
  return { hold, tasks, fires, runs, most };
}

const largestOf = (backlogs: readonly TaskBacklog[]): TaskBacklog[] =>
  [...backlogs]
    .sort((a, b) => b.count - a.count || a.task_id.localeCompare(b.task_id))
    .slice(0, MAX_LISTED);
