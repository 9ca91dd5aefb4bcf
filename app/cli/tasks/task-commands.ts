import { Option, type Command } from 'commander';
import { misfirePolicies, scheduleKinds, taskStatuses } from '../../../domain/vocabulary.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { Column } from '../terminal/table.ts';
import { addBackfillCommand } from './backfill-command.ts';
import { exitCodes, usageFault } from '../calling/faults.ts';
import { addAsOf, addHistory, type AsOf } from '../records/history-commands.ts';
import { addPaging, listAll, shownOf, type Paging } from '../calling/listing.ts';
import { paintState } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { Done, TaskItem, TaskRecord } from '../calling/records.ts';
import { ended } from '../runs/run-follow.ts';
import { showRun } from '../runs/run-screen.ts';
import type { Session } from '../calling/session.ts';
import { addTaskFieldOptions, taskFieldsOf, type TaskFieldOptions } from './task-fields.ts';
import { addTaskTimeCommands } from './task-time-commands.ts';
import { shortTime } from '../terminal/times.ts';
import { part, wholeNumberOf } from '../terminal/values.ts';

const SNOOZE_UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** `svc tasks …` */
export function addTaskCommands(line: CommandLine): Command {
  const group = line.group('tasks', 'lists, makes, changes and runs tasks');
  addList(line, group);
  addMaking(line, group);
  const show = group.command('show <id>').description('shows a task with all its fields');
  addAsOf(show);
  const showing = ['tasks show 01a1fc11-…', 'tasks show 01a1fc11-… --as-of 2026-11-20T18:00Z'];
  line.does<AsOf>(show, showing, async (session, { asOf }, [id = '']) => {
    const query = { as_of: asOf };
    const task = await session.client.ask((api) => api.tasks.get(id, query));
    session.answer(task, () => showTask(session, task));
  });
  addHistory(line, group, 'tasks');
  addRun(line, group);
  addStatus(line, group);
  addTaskTimeCommands(line, group);
  addBackfillCommand(line, group);
  return group;
}

interface ListOptions extends Paging {
  readonly status?: string;
  readonly kind?: string;
  readonly tag?: string;
  readonly search?: string;
  readonly createdBy?: string;
  readonly view?: string;
}

function addList(line: CommandLine, group: Command): void {
  const list = group
    .command('list')
    .alias('ls')
    .description('lists tasks, newest first')
    .addOption(new Option('--status <status>').choices([...taskStatuses]))
    .addOption(new Option('--kind <kind>', 'of its schedule').choices([...scheduleKinds]))
    .option('--tag <tag>', 'those with a tag')
    .option('--search <text>', 'those with a text in the title')
    .option('--created-by <agent>', "an agent's")
    .option('--view <name>', 'as of a moment: the views that `svc replay --into` made');
  addPaging(list);
  const examples = [
    'tasks list --status active',
    'tasks list --tag nightly --json',
    'tasks ls --all',
  ];
  line.does<ListOptions>(list, examples, async (session, options) => {
    const { status, kind, tag, search, createdBy, view } = options;
    const query = { status, schedule_kind: kind, tag, search, created_by: createdBy, view };
    const page = await listAll<TaskItem>(session.client, '/tasks', query, options);
    session.answer(page, () => {
      const rows = page.items.map((task) => [
        task.id,
        task.title,
        stateOf(task),
        task.schedule_text,
        shortTime(task.next_run_at),
        shortTime(task.last_run_at),
      ]);
      return `${session.table(columns(session), rows, 'no tasks')}${shownOf(session, page, 'tasks')}`;
    });
  });
}

const columns = ({ paint }: Session): readonly Column[] => [
  { title: 'ID' },
  { title: 'TITLE', most: 40 },
  { title: 'STATUS', paint: (text, status) => paintState(paint, status, text) },
  { title: 'SCHEDULE', most: 60 },
  { title: 'NEXT RUN' },
  { title: 'LAST RUN' },
];

const stateOf = ({ status, exhausted }: Pick<TaskRecord, 'status' | 'exhausted'>): string =>
  exhausted ? 'exhausted' : status;
const expressionOf = (task: Pick<TaskDefinition, 'schedule_kind' | 'schedule_expr'>): string =>
  `${task.schedule_kind} ${task.schedule_expr ?? '#'}`;

function showTask(session: Session, task: TaskRecord): string {
  const { id, title, status, payload, tags, warnings, ...rest } = task;
  const { next_run_at, last_run_at, created_at, updated_at, revision, exhausted } = rest;
  const head: [string, string | number | null][] = [
    ['id', id],
    ['title', title],
    ['status', exhausted ? `${status}, exhausted: no fire ahead` : status],
    ['schedule', task.schedule_text],
    ['expression', `${expressionOf(task)} ${task.timezone}`],
    ['next run', shortTime(next_run_at)],
    ['last run', shortTime(last_run_at)],
    ['tags', tags.join(', ')],
  ];
  const shown = new Set(['schedule_kind', 'schedule_expr', 'schedule_text', 'timezone']);
  for (const name of ['exhausted', 'revision']) shown.add(name);
  for (const name of ['next_run_at', 'last_run_at', 'created_at', 'updated_at']) shown.add(name);
  const others = Object.entries(rest).flatMap(([name, value]): [string, string][] =>
    shown.has(name) || value === null ? [] : [[name, String(value)]],
  );
  const tail: [string, string | number][] = [
    ['created', shortTime(created_at)],
    ['updated', `${shortTime(updated_at)}, revision ${revision}`],
    ['payload', JSON.stringify(payload, null, 2)],
    ...warnings.map((warning): [string, string] => ['warning', warning]),
  ];
  return session.fields([...head, ...others, ...tail]);
}

function addMaking(line: CommandLine, group: Command): void {
  const create = group.command('create').description('makes a task');
  addTaskFieldOptions(create, 'new');
  const creating = [
    `tasks create --title "Morning report" --cron "0 9 * * MON-FRI" --zone Europe/Berlin \\\n` +
      `      --payload '{"pipeline": [{"uses": "echo", "with": {"text": "it is \${now}"}}]}'`,
    'tasks create --file task.yaml --priority 1 --set timeout_seconds=60',
  ];
  line.does<TaskFieldOptions>(create, creating, async (session, options) => {
    const fields = await taskFieldsOf(options, session.surroundings);
    // Who gives options alone knows no name of a field; to whoever gives fields the service tells all that is at fault.
    const { file, set, title } = options;
    const byOptions = file === undefined && set === undefined && title !== undefined;
    if (byOptions && fields['schedule_kind'] === undefined) {
      throw usageFault('a task needs a schedule: --cron, --rrule, --once or --event');
    }
    const body = {
      description: fields['title'],
      created_by: fields['created_by'] ?? (await session.caller()),
      payload: { pipeline: [] },
      ...fields,
    };
    const task = await session.client.post<TaskRecord>('/tasks', { body });
    session.answer(task, () => showTask(session, task));
  });
  const update = group
    .command('update <id>')
    .description('changes the fields that are given; the others stay')
    .option(
      '--if-revision <n>',
      'only if it is still as it was seen',
      wholeNumberOf(0, 999_999_999),
    );
  addTaskFieldOptions(update, 'existing');
  const updating = ['tasks update 01a1fc11-… --cron "30 8 * * MON-FRI"'];
  type UpdateOptions = TaskFieldOptions & { readonly ifRevision?: number };
  line.does<UpdateOptions>(update, updating, async (session, options, [id]) => {
    const body = await taskFieldsOf(options, session.surroundings);
    if (Object.keys(body).length === 0) throw usageFault('nothing to change was given');
    const asking = { body, ifMatch: options.ifRevision };
    const task = await session.client.put<TaskRecord>(`/tasks/${part(id)}`, asking);
    session.answer(task, () => showTask(session, task));
  });
}

function addRun(line: CommandLine, group: Command): void {
  const run = group
    .command('run <id>')
    .description(
      'runs it once, now; also a paused one. With --wait, exit code 1 if the run fails or goes on',
    )
    .option('--wait <seconds>', 'for its end, up to 60', wholeNumberOf(0, 60));
  type Options = { readonly wait?: number };
  const examples = ['tasks run 01a1fc11-…', 'tasks run 01a1fc11-… --wait 30'];
  line.does<Options>(run, examples, async (session, { wait }, [id = '']) => {
    const done = await session.client.ask((api) => api.tasks.runNow(id, { wait }));
    const { run, run_id } = done.details;
    session.answer(done, () => (run ? showRun(session, run) : `${done.message}: ${run_id}`));
    if (!run) return exitCodes.ok;
    if (!ended.has(run.state)) {
      session.aside(`it has not ended within ${wait} s; svc runs follow ${run.id} goes on waiting`);
      return exitCodes.failure;
    }
    return run.state === 'failed' || run.state === 'canceled' ? exitCodes.failure : exitCodes.ok;
  });
}

/** The commands that answer with what was done. */
function addStatus(line: CommandLine, group: Command): void {
  const pause = group.command('pause <id>').description('no scheduled run until it is resumed');
  line.does(
    pause,
    ['tasks pause 01a1fc11-… --reason "the database moves"'],
    async (session, _, [id = '']) => {
      told(session, await session.client.ask((api) => api.tasks.pause(id)));
    },
  );
  const resume = group
    .command('resume <id>')
    .description('scheduled runs go on')
    .addOption(
      new Option('--missed <policy>', 'what the pause held back').choices([...misfirePolicies]),
    );
  type Resuming = { readonly missed?: (typeof misfirePolicies)[number] };
  const resuming = ['tasks resume 01a1fc11-… --missed latest'];
  line.does<Resuming>(resume, resuming, async (session, { missed }, [id = '']) => {
    told(session, await session.client.ask((api) => api.tasks.resume(id, { missed })));
  });
  const snooze = group
    .command('snooze <id> <time>')
    .description('puts the next run off: 90s, 15m, 2h, 1d; up to a week');
  line.does(snooze, ['tasks snooze 01a1fc11-… 2h'], async (session, _, [id = '', time = '']) => {
    const [, count, unit = 's'] = /^(\d{1,6})([smhd])?$/.exec(time) ?? [];
    if (count === undefined) throw usageFault(`${time} is no time like 90s, 15m, 2h or 1d`);
    const delay_seconds = Number(count) * SNOOZE_UNITS[unit as keyof typeof SNOOZE_UNITS];
    told(session, await session.client.ask((api) => api.tasks.snooze(id, { delay_seconds })));
  });
  const cancel = group.command('cancel <id>').description('ends it for ever, with its queued runs');
  line.does(
    cancel,
    ['tasks cancel 01a1fc11-… --reason "not needed any more"'],
    async (session, _, [id = '']) => {
      told(session, await session.client.ask((api) => api.tasks.cancel(id)));
    },
  );
}

function told(session: Session, done: Done): void {
  session.answer(done, () => `${done.message}${whenNext(done)}`);
}

/** When the task runs next, where the answer says so. */
function whenNext({ details }: Done): string {
  const next = details['next_run_at'];
  return typeof next === 'string' ? `; it runs ${shortTime(next)}` : '';
}
