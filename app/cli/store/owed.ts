import type { Stores } from '../../stores.ts';
import { owedBy, type OwedByTask } from '../../archive/owed.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { load } from '../../../domain/handle.ts';
import { operationsFold, type HoldOrder } from '../../../domain/operators/operations.ts';
import { streams } from '../../../domain/streams.ts';
import { presentRhythms } from '../forecast/present-rhythms.ts';

/** Tasks that are shown one by one. */
const SHOWN = 20;

/** What the service owes: the nominal times of all tasks that are due and not decided. */
export interface Owed {
  readonly hold: HoldOrder | null;
  readonly tasks: number;
  readonly fires: number;
  /** How many runs come of them, by what a release says. */
  readonly runs: { own: number; skip: number; latest: number; all: number };
  /** Those who owe most. */
  readonly most: readonly (OwedByTask & { readonly title: string | null })[];
}

/**
 * Counts what is owed at a moment. In memory are those who owe most.
 * @throws the stores' errors; BrokenOff when the signal is aborted
 */
export async function readOwed(stores: Stores, now: number, signal: AbortSignal): Promise<Owed> {
  const { store, readModel } = stores;
  const { hold } = (await load(store, streams.operations(), operationsFold)).state;
  const runs = { own: 0, skip: 0, latest: 0, all: 0 };
  let [tasks, fires] = [0, 0];
  let most: OwedByTask[] = [];
  for await (const { taskId, rhythm } of presentRhythms(store, readModel, signal)) {
    const owed = owedBy(taskId, rhythm, now);
    if (owed === null) continue;
    tasks += 1;
    fires += owed.count;
    for (const policy of ['own', 'skip', 'latest', 'all'] as const)
      runs[policy] += owed.runs[policy];
    most.push(owed);
    if (most.length > 4 * SHOWN) most = greatest(most);
  }
  const titled = [];
  for (const each of greatest(most)) {
    titled.push({ ...each, title: await titleOf(store, each.task_id) });
  }
  return { hold, tasks, fires, runs, most: titled };
}

/** From the log: a restored one has no views yet. */
async function titleOf(store: EventStore, taskId: string): Promise<string | null> {
  const { state } = await load(store, streams.task(taskId), taskFold);
  return 'definition' in state ? state.definition.title : null;
}

const greatest = (owed: readonly OwedByTask[]): OwedByTask[] =>
  [...owed].sort((a, b) => b.count - a.count || a.task_id.localeCompare(b.task_id)).slice(0, SHOWN);
