import type {
  ConcurrencyKey,
  HealthReport,
  StatisticsSummary,
  TaskStatistics,
} from '../../../api/client/client.ts';
import { exitCodes } from '../calling/command-errors.ts';
import type { Session } from '../calling/session.ts';
import { text, view, wholeNumber } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { paintState, statePainter } from '../terminal/paint.ts';
import { duration, shortTime } from '../terminal/units.ts';

type Statistics = StatisticsSummary | TaskStatistics;

/** `svc stats`, `svc health`, `svc concurrency` */
export function addOverviewCommands(line: CommandLine): void {
  line.add(line.program, 'stats', {
    description: 'show run statistics by day',
    options: {
      task: text('id', 'runs of one task'),
      days: wholeNumber('n', 'number of days, 1-365 (default: 7, for a task 30)', 1, 365),
      timezone: text('zone', 'IANA time zone of the days (default: UTC)'),
      view,
    },
    examples: ['stats --days 30 --timezone Europe/Berlin', 'stats --task 01a1fc11-…'],
    run: (session, { task, ...query }) => {
      const show = (answer: Statistics): string => showStatistics(session, answer);
      return task === undefined
        ? session.show((api) => api.statistics.summary(query), show)
        : session.show((api) => api.statistics.ofTask(task, query), show);
    },
  });
  line.add(line.program, 'health', {
    description: "show the health of the service's parts; exit code 1 if unhealthy. Needs no token",
    examples: ['health', 'health --json'],
    run: async (session) => {
      const request = { method: 'GET', path: '/health', open: true, also: [503] } as const;
      const answer = await session.client.call((api) => api.request<HealthReport>(request));
      session.answer(answer, () => {
        const table = session.table<HealthReport['checks'][number]>(
          [
            { title: 'PART', cell: ({ name }) => name },
            {
              title: 'STATUS',
              cell: ({ status }) => status,
              paint: statePainter(session.paint),
            },
            { title: 'MESSAGE', cell: ({ message }) => message },
          ],
          answer.checks,
          'no checks',
        );
        return `${paintState(session.paint, answer.status)}, version ${answer.version}\n\n${table}`;
      });
      return answer.status === 'unhealthy' ? exitCodes.failure : exitCodes.ok;
    },
  });
  line.add(line.program, 'concurrency <key>', {
    description: 'show the holders and waiters of a concurrency key',
    options: { createdBy: text('agent', 'the owner of the tasks (default: the caller)') },
    examples: ['concurrency db-main'],
    run: (session, { createdBy: created_by }, [key = '']) =>
      session.show(
        (api) => api.schedules.concurrency(key, { created_by }),
        (answer) => showConcurrency(session, answer),
      ),
  });
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
  const max = Math.max(1, ...answer.by_day.map((day) => day.total_runs));
  const days = session.table<Statistics['by_day'][number]>(
    [
      { title: 'DAY', cell: ({ date }) => date },
      { title: 'RUNS', align: 'right', cell: (day) => day.total_runs },
      { title: 'SUCCEEDED', align: 'right', cell: (day) => day.successful_runs },
      {
        title: 'FAILED',
        align: 'right',
        cell: (day) => day.failed_runs,
        paint: (text, count) => (count === '0' ? text : session.paint.bad(text)),
      },
      { title: '', cell: (day) => '█'.repeat(Math.ceil((day.total_runs / max) * 30)) },
    ],
    answer.by_day,
    'no days',
  );
  return `${facts}\n\n${days}`;
}

function showConcurrency(session: Session, answer: ConcurrencyKey): string {
  const { key, limit, holders, waiters, more_waiters } = answer;
  const more =
    more_waiters === null ? ' and more' : more_waiters === 0 ? '' : ` and ${more_waiters}`;
  const allowed = limit === null ? 'no active task uses it' : `${limit} at a time`;
  const head = `${key}: ${allowed}, ${holders.length} running, ${waiters.length}${more} waiting`;
  const runs = [
    ...holders.map((run) => ({ ...run, state: 'holds', priority: null })),
    ...waiters.map((run) => ({ ...run, state: 'waits' })),
  ];
  if (runs.length === 0) return head;
  const table = session.table<(typeof runs)[number]>(
    [
      { title: '', cell: ({ state }) => state },
      { title: 'RUN', cell: ({ run_id }) => run_id },
      { title: 'TASK', cell: ({ task_id }) => task_id },
      { title: 'SINCE', cell: ({ since }) => shortTime(since) },
      { title: 'PRIORITY', cell: ({ priority }) => priority },
    ],
    runs,
    '',
  );
  return `${head}\n\n${table}`;
}
