import type { Command } from 'commander';
import type { TaskItem } from '../../../api/client/client.ts';
import {
  endedRunStates,
  misfirePolicies,
  scheduleKinds,
  taskOrders,
  taskStatuses,
} from '../../../domain/vocabulary.ts';
import { exitCodes, usageError } from '../calling/command-errors.ts';
import { addList } from '../calling/lists.ts';
import type { TaskRecord } from '../calling/records.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { asOf, choice, text, view, wholeNumber } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { addHistory } from '../records/history-commands.ts';
import { exitCodeOf } from '../runs/follow-runs.ts';
import { paramOptions, paramsOf } from '../runs/run-params.ts';
import { showRun } from '../runs/run-screen.ts';
import { statePainter } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';
import { addBackfillCommand } from './backfill-commands.ts';
import { addScheduleCommands } from './schedule-commands.ts';
import { taskFieldOptions, taskFieldsOf } from './task-fields.ts';

const SNOOZE_UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** `svc tasks …` */
export function addTaskCommands(line: CommandLine): void {
  const group = line.group('tasks', 'list, create, change and run tasks');
  addList(line, group, 'list', {
    description: 'list tasks, newest first or by --sort',
    options: {
      status: choice('status', 'tasks with this status', taskStatuses),
      kind: choice('kind', 'tasks with this kind of schedule', scheduleKinds),
      tag: text('tag', 'tasks with this tag'),
      secret: text('name', 'tasks whose pipeline names this secret'),
      search: text('text', 'tasks with this text in the title'),
      sort: choice('order', 'by this; health and p95: the worst first', taskOrders),
      createdBy: text('agent', 'tasks of this agent'),
      view,
    },
    examples: [
      'tasks list --status active',
      'tasks list --sort health --limit 10',
      'tasks list --tag nightly --json',
      'tasks ls --all',
    ],
    path: () => '/tasks',
    query: ({ kind, createdBy, status, tag, secret, search, sort, view: name }) => {
      const owned = { schedule_kind: kind, created_by: createdBy };
      return { ...owned, status, tag, secret, search, sort, view: name };
    },
    columns: ({ paint }): readonly RecordColumn<TaskItem>[] => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'TITLE', maxWidth: 40, cell: ({ title }) => title },
      {
        title: 'STATUS',
        cell: ({ status, exhausted }) => (exhausted ? 'exhausted' : status),
        paint: statePainter(paint),
      },
      { title: 'SCHEDULE', maxWidth: 60, cell: ({ schedule_text }) => schedule_text },
      { title: 'NEXT RUN', cell: ({ next_run_at }) => shortTime(next_run_at) },
      { title: 'LAST RUN', cell: ({ last_run_at }) => shortTime(last_run_at) },
    ],
    noun: 'tasks',
  });
  addEditing(line, group);
  line.add(group, 'show <id>', {
    description: 'show a task with all its fields',
    options: { asOf },
    examples: ['tasks show 01a1fc11-…', 'tasks show 01a1fc11-… --as-of 2026-11-20T18:00Z'],
    run: (session, { asOf: as_of }, [id = '']) =>
      session.show(
        (api) => api.tasks.get(id, { as_of }),
        (task) => showTask(session, task),
      ),
  });
  addHistory(line, group, 'tasks');
  addRun(line, group);
  addStatus(line, group);
  addScheduleCommands(line, group);
  addBackfillCommand(line, group);
}

function answerTask(session: Session, task: TaskRecord): void {
  session.answer(task, () => showTask(session, task));
}

/** Who did something, when and why. */
function actText({ by, by_name, at, reason }: NonNullable<TaskRecord['paused']>): string {
  return `by ${by_name ?? by} at ${shortTime(at)}${reason === null ? '' : `: ${reason}`}`;
}

function showTask(session: Session, task: TaskRecord): string {
  const { id, title, status, payload, params_schema, tags, warnings, ...more } = task;
  const { exhausted, revision, ...rest } = more;
  const { schedule_kind, schedule_expr, schedule_text, timezone, ...times } = rest;
  const { next_run_at, last_run_at, created_at, updated_at, paused, snoozed, ...others } = times;
  const given = Object.entries(others).filter(([, value]) => value !== null);
  return session.fields([
    ['id', id],
    ['title', title],
    ['status', exhausted ? `${status}, exhausted: no fire ahead` : status],
    ['schedule', schedule_text],
    ['expression', `${schedule_kind} ${schedule_expr ?? '#'} ${timezone}`],
    ['next run', shortTime(next_run_at)],
    ['last run', shortTime(last_run_at)],
    ...(paused === null ? [] : [['paused', actText(paused)] as const]),
    ...(snoozed === null
      ? []
      : [['snoozed', `until ${shortTime(snoozed.until)} ${actText(snoozed)}`] as const]),
    ['tags', tags.join(', ')],
    ...given.map(([name, value]): [string, string] => [name, String(value)]),
    ['created', shortTime(created_at)],
    ['updated', `${shortTime(updated_at)}, revision ${revision}`],
    ['payload', JSON.stringify(payload, null, 2)],
    ['params schema', params_schema ? JSON.stringify(params_schema, null, 2) : ''],
    ...warnings.map((warning): [string, string] => ['warning', warning]),
  ]);
}

function addEditing(line: CommandLine, group: Command): void {
  line.add(group, 'create', {
    description: 'create a task',
    options: taskFieldOptions(true),
    examples: [
      `tasks create --title "Morning report" --cron "0 9 * * MON-FRI" --zone Europe/Berlin \\\n` +
        `      --payload '{"pipeline": [{"uses": "echo", "with": {"text": "it is \${now}"}}]}'`,
      'tasks create --file task.yaml --priority 1 --set timeout_seconds=60',
    ],
    run: async (session, options) => {
      const fields = await taskFieldsOf(options, session.environment);
      // With flags, the caller does not know field names; with a file, the service reports all issues.
      const { file, set, title } = options;
      const isByFlags = file === undefined && set === undefined && title !== undefined;
      if (isByFlags && fields['schedule_kind'] === undefined) {
        throw usageError('a task needs a schedule: --cron, --rrule, --once or --event');
      }
      const body = {
        description: fields['title'],
        created_by: fields['created_by'] ?? (await session.caller()),
        payload: { pipeline: [] },
        ...fields,
      };
      answerTask(session, await session.client.post<TaskRecord>('/tasks', { body }));
    },
  });
  line.add(group, 'update <id>', {
    description: 'change the given fields of a task',
    options: {
      ifRevision: wholeNumber('n', 'only if the task has this revision', 0, 999_999_999),
      ...taskFieldOptions(false),
    },
    examples: ['tasks update 01a1fc11-… --cron "30 8 * * MON-FRI"'],
    run: async (session, options, [id]) => {
      const body = await taskFieldsOf(options, session.environment);
      if (Object.keys(body).length === 0) throw usageError('give at least one field to change');
      const request = { body, ifMatch: options.ifRevision };
      const path = `/tasks/${pathSegment(id)}`;
      answerTask(session, await session.client.put<TaskRecord>(path, request));
    },
  });
}

function addRun(line: CommandLine, group: Command): void {
  line.add(group, 'run <id>', {
    description:
      'run a task once, now, even if it is paused. With --wait, exit code 1 if the run fails or goes on',
    options: {
      wait: wholeNumber('seconds', 'seconds to wait for its end, at most 60', 0, 60),
      ...paramOptions,
    },
    examples: [
      'tasks run 01a1fc11-… --wait 30',
      'tasks run 01a1fc11-… --param limit=5 --param shop=https://outlet.example',
    ],
    run: async (session, { wait, ...options }, [id = '']) => {
      const params = await paramsOf(options, session.environment);
      const done = await session.client.call((api) => api.tasks.runNow(id, { wait, params }));
      const { run, run_id } = done.details;
      session.answer(done, () => (run ? showRun(session, run) : `${done.message}: ${run_id}`));
      if (!run) return exitCodes.ok;
      if (endedRunStates.includes(run.state)) return exitCodeOf(run);
      session.aside(`it did not end within ${wait} s; to follow it: svc runs follow ${run.id}`);
      return exitCodes.failure;
    },
  });
}

function addStatus(line: CommandLine, group: Command): void {
  line.add(group, 'pause <id>', {
    description: 'stop scheduled runs until the task is resumed',
    examples: ['tasks pause 01a1fc11-… --reason "the database moves"'],
    run: (session, _, [id = '']) => session.done((api) => api.tasks.pause(id)),
  });
  line.add(group, 'resume <id>', {
    description: 'continue scheduled runs',
    options: { missed: choice('policy', 'for fires missed during the pause', misfirePolicies) },
    examples: ['tasks resume 01a1fc11-… --missed latest'],
    run: (session, options, [id = '']) => session.done((api) => api.tasks.resume(id, options)),
  });
  line.add(group, 'snooze <id> <time>', {
    description: 'postpone the next run: 90s, 15m, 2h, 1d; at most a week',
    examples: ['tasks snooze 01a1fc11-… 2h'],
    run: async (session, _, [id = '', time = '']) => {
      const [, count, unit = 's'] = /^(\d{1,6})([smhd])?$/.exec(time) ?? [];
      if (count === undefined) {
        throw usageError(`the time must be like 90s, 15m, 2h or 1d, got ${time}`);
      }
      const delay_seconds = Number(count) * SNOOZE_UNITS[unit as keyof typeof SNOOZE_UNITS];
      return session.done((api) => api.tasks.snooze(id, { delay_seconds }));
    },
  });
  line.add(group, 'cancel <id>', {
    description: 'end a task permanently and cancel its queued runs',
    examples: ['tasks cancel 01a1fc11-… --reason "no longer needed"'],
    run: (session, _, [id = '']) => session.done((api) => api.tasks.cancel(id)),
  });
}
