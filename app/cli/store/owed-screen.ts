import type { Stores } from '../../stores.ts';
import { owedBy, type OwedByTask } from '../../archive/owed.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { load } from '../../../domain/handle.ts';
import { operationsFold, type HoldOrder } from '../../../domain/operators/operations.ts';
import { streams } from '../../../domain/streams.ts';
import { presentRhythms } from '../forecast/present-rhythms.ts';
import { printable } from '../terminal/paint.ts';
import type { Session } from '../calling/session.ts';
import { shortTime } from '../terminal/times.ts';

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

/** Counts what is owed at a moment. In memory are those who owe most. */
export async function readOwed(stores: Stores, now: number): Promise<Owed> {
  const { store, readModel } = stores;
  const { hold } = (await load(store, streams.operations(), operationsFold)).state;
  const runs = { own: 0, skip: 0, latest: 0, all: 0 };
  let [tasks, fires] = [0, 0];
  let most: OwedByTask[] = [];
  for await (const { taskId, rhythm } of presentRhythms(store, readModel)) {
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

/** What is owed, for a person: by task, and what a release would make of it. */
export function showOwed(session: Session, owed: Owed): string {
  const { paint } = session;
  const { hold, tasks, fires, runs, most } = owed;
  const held =
    hold === null
      ? paint.good('not on hold')
      : paint.warning(`on hold since ${shortTime(hold.since)}: ${printable(hold.reason)}`);
  if (tasks === 0) return `${held}\nnothing is owed`;
  const columns = [
    { title: 'TASK' },
    { title: 'TITLE', most: 30 },
    { title: 'OWED', align: 'right' as const },
    { title: 'FROM' },
    { title: 'TO' },
    { title: 'POLICY' },
    { title: 'RUNS', align: 'right' as const },
  ];
  const rows = most.map((each) => [
    each.task_id,
    each.title ?? '',
    each.count,
    shortTime(each.first),
    shortTime(each.last),
    each.policy,
    each.runs.own,
  ]);
  const rest = tasks > most.length ? [paint.faint(`… and ${tasks - most.length} more tasks`)] : [];
  const of = (count: number): string =>
    `${count.toLocaleString('en')} run${count === 1 ? '' : 's'}`;
  return [
    held,
    `${fires.toLocaleString('en')} fires of ${tasks} task${tasks === 1 ? '' : 's'} are owed`,
    '',
    session.table(columns, rows, ''),
    ...rest,
    '',
    'svc release decides what becomes of them:',
    `  svc release                  ${of(runs.own)}, as each task says`,
    `  svc release --missed=skip    ${of(runs.skip)}: all are recorded as missed`,
    `  svc release --missed=latest  ${of(runs.latest)}, one of each task`,
    `  svc release --missed=all     ${of(runs.all)}, of each task the 100 newest at most`,
  ].join('\n');
}
