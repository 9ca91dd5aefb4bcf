import type { Command } from 'commander';
import type { ErrorStatistics, RunExplanation } from '../../../api/client/client.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { text, wholeNumber } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { paintState, printable } from '../terminal/paint.ts';
import { duration, shortTime } from '../terminal/units.ts';

type Obstacle = RunExplanation['waits_for'][number];
type StepTime = RunExplanation['step_times'][number];
type ErrorGroup = ErrorStatistics['items'][number];

/** Tasks that a group of errors names. */
const MAX_NAMED = 3;

/** `svc runs explain` and `svc runs errors` */
export function addExplainCommands(line: CommandLine, group: Command): void {
  line.add(group, 'explain <id>', {
    description: 'explain why a run ran, what it waits for, and which of its steps were slow',
    options: { step: text('id', "also show the arguments of this step's tool call") },
    examples: ['runs explain ce89cf0f-…', 'runs explain ce89cf0f-… --step fetch'],
    run: (session, { step }, [id = '']) =>
      session.show(
        (api) => api.runs.explain(id, { step }),
        (answer) => showExplanation(session, answer),
      ),
  });
  line.add(group, 'errors', {
    description: 'list the failed runs of the last days by error, the latest error first',
    options: {
      task: text('id', 'failures of this task'),
      days: wholeNumber('n', 'number of days, 1-31 (default: 1)', 1, 31),
      limit: wholeNumber('n', 'number of errors, 1-200 (default: 50)', 1, 200),
    },
    examples: ['runs errors --days 7', 'runs redrive --error-group 4b1d0f7c2a9e8d35'],
    run: (session, { task, ...query }) =>
      session.show(
        (api) => api.statistics.errors({ task_id: task, ...query }),
        ({ items }) => session.table(errorColumns, items, 'no run failed'),
      ),
  });
}

const errorColumns: readonly RecordColumn<ErrorGroup>[] = [
  { title: 'GROUP', cell: ({ id }) => id },
  { title: 'ERROR', maxWidth: 60, cell: ({ error }) => error },
  { title: 'RUNS', align: 'right', cell: ({ count }) => count },
  { title: 'FIRST', cell: ({ first }) => shortTime(first) },
  { title: 'LAST', cell: ({ last }) => shortTime(last) },
  { title: 'LAST RUN', cell: ({ last_run_id }) => last_run_id },
  { title: 'TASKS', cell: tasksOf },
];

function tasksOf({ tasks, task_count }: ErrorGroup): string {
  const named = tasks.slice(0, MAX_NAMED).map(({ task_id }) => task_id);
  const others = task_count - named.length;
  return [...named, ...(others > 0 ? [`and ${others} more`] : [])].join(' ');
}

function showExplanation(session: Session, answer: RunExplanation): string {
  const { state, requested, waits_for, previous_run_id, next_run_id, step_times, input } = answer;
  const by = requested.by_name ?? requested.by;
  const parts = [
    `${paintState(session.paint, state)}: ${printable(requested.text)}`,
    session.fields([
      ['requested', `${shortTime(requested.at)} by ${by}`],
      ['reason', requested.reason],
      ['run before', previous_run_id],
      ['run after', next_run_id],
    ]),
  ];
  if (waits_for.length > 0) parts.push(session.table(obstacleColumns, waits_for, ''));
  if (step_times.length > 0) parts.push(session.table(stepColumns(session), step_times, ''));
  if (input !== null) {
    const title = `input of ${input.step}${input.exact ? '' : ' (computed anew; it may differ)'}`;
    const json = printable(JSON.stringify(input.value, null, 2));
    parts.push(`${session.paint.faint(printable(title))}\n${json}`);
  }
  return parts.join('\n\n');
}

const obstacleColumns: readonly RecordColumn<Obstacle>[] = [
  { title: 'WAITS FOR', maxWidth: 100, cell: ({ text: sentence }) => sentence },
  { title: 'SINCE', cell: ({ since }) => shortTime(since) },
  { title: 'UNTIL', cell: ({ until }) => shortTime(until) },
  { title: 'BY', cell: ({ by, by_name }) => by_name ?? by },
  { title: 'REASON', maxWidth: 60, cell: ({ reason }) => reason },
  { title: 'RUNS', cell: ({ run_ids }) => run_ids.join(' ') },
];

const stepColumns = ({ paint }: Session): readonly RecordColumn<StepTime>[] => [
  { title: 'STEP', cell: ({ step }) => step },
  { title: 'TOOK', align: 'right', cell: ({ took_seconds }) => duration(took_seconds) },
  { title: 'USUALLY', align: 'right', cell: ({ p50_seconds }) => duration(p50_seconds) },
  { title: 'P95', align: 'right', cell: ({ p95_seconds }) => duration(p95_seconds) },
  { title: 'OF RUNS', align: 'right', cell: ({ measured }) => measured },
  { title: 'NOTE', cell: ({ slow }) => (slow ? 'slow' : ''), paint: paint.warning },
];
