import type {
  ConcurrencyKey,
  HealthReport,
  StatisticsSummary,
  TaskStatistics,
} from '../../../api/client/client.ts';
import { exitCodes } from '../calling/faults.ts';
import { paintState } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { duration, shortTime } from '../terminal/times.ts';
import { wholeNumberOf } from '../terminal/values.ts';

type Statistics = StatisticsSummary | TaskStatistics;

/** `svc stats`, `svc health`, `svc concurrency` */
export function addOverviewCommands(line: CommandLine): void {
  addStats(line);
  addHealth(line);
  const concurrency = line.program
    .command('concurrency <key>')
    .description('who holds a concurrency key, and who waits for it')
    .option('--created-by <agent>', 'among the tasks of an agent (the caller)');
  type Options = { readonly createdBy?: string };
  line.does<Options>(concurrency, ['concurrency db-main'], async (session, options, [key = '']) => {
    const query = { created_by: options.createdBy };
    const answer = await session.client.ask((api) => api.schedules.concurrency(key, query));
    session.answer(answer, () => showConcurrency(session, answer));
  });
}

function addStats(line: CommandLine): void {
  const stats = line.program
    .command('stats')
    .description('how the runs went, by day')
    .option('--task <id>', 'of one task')
    .option('--days <n>', '1 to 365 (7; 30 of a task)', wholeNumberOf(1, 365))
    .option('--view <name>', 'as of a moment: the views that `svc replay --into` made');
  type Options = { readonly task?: string; readonly days?: number; readonly view?: string };
  line.does<Options>(
    stats,
    ['stats --days 30', 'stats --task 01a1fc11-…'],
    async (session, given) => {
      const { task, days, view } = given;
      const query = { days, view };
      const answer: Statistics = await (task === undefined
        ? session.client.ask((api) => api.statistics.summary(query))
        : session.client.ask((api) => api.statistics.ofTask(task, query)));
      session.answer(answer, () => showStatistics(session, answer));
    },
  );
}

function showStatistics(session: Session, answer: Statistics): string {
  const { total_runs, successful_runs, failed_runs, success_rate } = answer;
  const rate = success_rate === null ? '' : ` (${(success_rate * 100).toFixed(1)} % succeeded)`;
  const [all, succeeded, failed] = [total_runs, successful_runs, failed_runs].map((count) =>
    count.toLocaleString('en'),
  );
  const facts = session.fields([
    ['days', answer.period_days],
    ['runs', `${all}: ${succeeded} succeeded, ${failed} failed${rate}`],
    ['tasks', 'total_tasks_executed' in answer ? answer.total_tasks_executed : null],
    ['average', duration(answer.avg_execution_time_seconds)],
    ['p50', duration(answer.p50_execution_time_seconds)],
    ['p95', duration(answer.p95_execution_time_seconds)],
    ['last run', 'last_run' in answer ? shortTime(answer.last_run) : null],
    ['last failure', 'last_run' in answer ? shortTime(answer.last_failure) : null],
  ]);
  const most = Math.max(1, ...answer.by_day.map((day) => day.total_runs));
  const days = session.table(
    [
      { title: 'DAY' },
      { title: 'RUNS', align: 'right' },
      { title: 'SUCCEEDED', align: 'right' },
      {
        title: 'FAILED',
        align: 'right',
        paint: (text, n) => (n === '0' ? text : session.paint.bad(text)),
      },
      { title: '' },
    ],
    answer.by_day.map((day) => [
      day.date,
      day.total_runs,
      day.successful_runs,
      day.failed_runs,
      '█'.repeat(Math.ceil((day.total_runs / most) * 30)),
    ]),
    'no days',
  );
  return `${facts}\n\n${days}`;
}

function addHealth(line: CommandLine): void {
  const health = line.program
    .command('health')
    .description(
      'how each part of the service is; exit code 1 when it is unhealthy. Needs no token',
    );
  line.does(health, ['health', 'health --json'], async (session) => {
    // That it is unhealthy is an answer here.
    const asking = { method: 'GET', path: '/health', open: true, also: [503] } as const;
    const answer = await session.client.ask((api) => api.request<HealthReport>(asking));
    session.answer(answer, () => {
      const columns = [
        { title: 'PART' },
        {
          title: 'STATUS',
          paint: (text: string, cell: string) => paintState(session.paint, cell, text),
        },
        { title: 'MESSAGE' },
      ];
      const rows = answer.checks.map(({ name, status, message }) => [name, status, message]);
      const head = `${paintState(session.paint, answer.status)}, version ${answer.version}`;
      return `${head}\n\n${session.table(columns, rows, 'no checks')}`;
    });
    return answer.status === 'unhealthy' ? exitCodes.failure : exitCodes.ok;
  });
}

function showConcurrency(session: Session, answer: ConcurrencyKey): string {
  const { key, limit, holders, waiters, more_waiters } = answer;
  const more =
    more_waiters === null ? ' and more' : more_waiters === 0 ? '' : ` and ${more_waiters}`;
  const allowed = limit === null ? 'no active task uses it' : `${limit} at a time`;
  const head = `${key}: ${allowed}, ${holders.length} running, ${waiters.length}${more} waiting`;
  const rows = [
    ...holders.map(({ run_id, task_id, since }) => [
      'holds',
      run_id,
      task_id,
      shortTime(since),
      null,
    ]),
    ...waiters.map((each) => [
      'waits',
      each.run_id,
      each.task_id,
      shortTime(each.since),
      each.priority,
    ]),
  ];
  const columns = ['', 'RUN', 'TASK', 'SINCE', 'PRIORITY'].map((title) => ({ title }));
  return rows.length === 0 ? head : `${head}\n\n${session.table(columns, rows, '')}`;
}
