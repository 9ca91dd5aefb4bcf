import { counted } from '../../../domain/explain/words.ts';
import { printable } from '../terminal/paint.ts';
import type { Session } from '../calling/session.ts';
import { shortTime } from '../terminal/times.ts';
import type { Owed } from './owed.ts';

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
    `${counted(fires, 'fire')} of ${counted(tasks, 'task')} ${fires === 1 ? 'is' : 'are'} owed`,
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
