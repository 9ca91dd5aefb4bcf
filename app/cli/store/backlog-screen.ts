import { counted } from '../../../domain/explain/words.ts';
import type { Session } from '../calling/session.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import type { BacklogSummary } from './read-backlog.ts';

/** Formats the backlog by task, and the runs that a release would start. */
export function showBacklog(session: Session, backlog: BacklogSummary): string {
  const { paint } = session;
  const { hold, tasks, fires, runs, most } = backlog;
  const head =
    hold === null
      ? paint.good('not on hold')
      : paint.warning(`on hold since ${shortTime(hold.since)}: ${printable(hold.reason)}`);
  if (tasks === 0) return `${head}\nno backlog`;
  const table = session.table<BacklogSummary['most'][number]>(
    [
      { title: 'TASK', cell: ({ task_id }) => task_id },
      { title: 'TITLE', maxWidth: 30, cell: ({ title }) => title },
      { title: 'FIRES', align: 'right', cell: ({ count }) => count },
      { title: 'FROM', cell: ({ first }) => shortTime(first) },
      { title: 'TO', cell: ({ last }) => shortTime(last) },
      { title: 'POLICY', cell: ({ policy }) => policy },
      { title: 'RUNS', align: 'right', cell: (each) => each.runs.own },
    ],
    most,
    '',
  );
  const rest = tasks > most.length ? [paint.faint(`… and ${tasks - most.length} more tasks`)] : [];
  const backlogged = fires === 1 ? 'is due and undecided' : 'are due and undecided';
  return [
    head,
    `${counted(fires, 'fire')} of ${counted(tasks, 'task')} ${backlogged}`,
    '',
    table,
    ...rest,
    '',
    'svc release determines the runs:',
    `  svc release                  ${counted(runs.own, 'run')}, by each task's policy`,
    `  svc release --missed=skip    ${counted(runs.skip, 'run')}; all are recorded as missed`,
    `  svc release --missed=latest  ${counted(runs.latest, 'run')}, one for each task`,
    `  svc release --missed=all     ${counted(runs.all, 'run')}, at most the 100 newest of each task`,
  ].join('\n');
}
