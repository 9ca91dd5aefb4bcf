import type { Command } from 'commander';
import type { Backfill } from '../../../api/client/client.ts';
import { backfillScopes } from '../../../domain/vocabulary.ts';
import { addList } from '../calling/lists.ts';
import type { Done } from '../calling/records.ts';
import type { RecordColumn } from '../calling/session.ts';
import { choice, flag, required, text, wholeNumber } from '../options.ts';
import { paramOptions, paramsOf } from '../runs/run-params.ts';
import type { CommandLine } from '../program.ts';
import { statePainter } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';

/** `svc tasks backfill` */
export function addBackfillCommand(line: CommandLine, group: Command): void {
  line.add(group, 'backfill <id>', {
    description: "run a task's scheduled times of the past, a few at a time",
    options: {
      from: required(text('instant', 'start of the span')),
      to: required(text('instant', 'end of the span; a date includes that day')),
      only: choice('which', 'times without a run, or all', backfillScopes),
      concurrency: wholeNumber('n', 'runs at a time', 1, 100),
      dryRun: flag('only list the times'),
      ...paramOptions,
    },
    examples: ['tasks backfill 01a1fc11-… --from 2026-11-01 --to 2026-11-08 --dry-run'],
    run: async (session, { dryRun: dry_run = false, param, params: json, ...rest }, [id]) => {
      const params = await paramsOf({ param, params: json }, session.environment);
      const body = { ...rest, dry_run, params };
      const done = await session.client.post<Done>(`/tasks/${pathSegment(id)}/backfill`, { body });
      session.answer(done, () => {
        const facts = Object.entries(done.details).flatMap(([name, value]): [string, string][] =>
          ['string', 'number', 'boolean'].includes(typeof value) ? [[name, String(value)]] : [],
        );
        return `${done.message}\n\n${session.fields(facts)}${timesOf(done.details)}`;
      });
    },
  });
}

/** The times that a backfill would run; the response has the first of them. */
function timesOf({ first, to_request }: Done['details']): string {
  if (!Array.isArray(first) || first.length === 0) return '';
  const times = first.map((time) => shortTime(String(time)));
  const others = Number(to_request) - times.length;
  return ['', '', ...times, ...(others > 0 ? [`and ${others} more`] : [])].join('\n');
}

/** `svc backfills …` */
export function addBackfillCommands(line: CommandLine): void {
  const group = line.group('backfills', 'list, show and cancel backfills of tasks');
  addList(line, group, 'list <task>', {
    description: 'list the backfills of a task, newest first',
    examples: ['backfills list 01a1fc11-…'],
    path: ([task]) => `/tasks/${pathSegment(task)}/backfills`,
    columns: ({ paint }): readonly RecordColumn<Backfill>[] => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'STATE', cell: ({ state }) => state, paint: statePainter(paint) },
      { title: 'FROM', cell: ({ from }) => shortTime(from) },
      { title: 'TO', cell: ({ to }) => shortTime(to) },
      { title: 'TIMES', align: 'right', cell: ({ total }) => total },
      { title: 'REQUESTED', align: 'right', cell: ({ requested }) => requested },
      { title: 'UNFINISHED', align: 'right', cell: ({ unfinished }) => unfinished },
      { title: 'FAILED', align: 'right', cell: ({ failed }) => failed },
    ],
    noun: 'backfills',
  });
  line.add(group, 'show <id>', {
    description: 'show a backfill and its progress',
    examples: ['backfills show 01a1fc6d-…'],
    run: async (session, _, [id = '']) => {
      const backfill = await session.client.call((api) => api.backfills.get(id));
      const { state, canceled_by } = backfill;
      session.answer(backfill, () =>
        session.fields([
          ['id', backfill.id],
          ['task', `${backfill.task_id}, revision ${backfill.task_revision}`],
          ['state', canceled_by === null ? state : `${state} (${canceled_by})`],
          ['from', shortTime(backfill.from)],
          ['to', shortTime(backfill.to)],
          ['times', `${backfill.total} (${backfill.only})`],
          ['decided', backfill.up_to === null ? 'none' : `up to ${shortTime(backfill.up_to)}`],
          ['params', backfill.params ? JSON.stringify(backfill.params) : ''],
          ['requested', `${backfill.requested} runs; ${backfill.existing} times left out`],
          ['unfinished', `${backfill.unfinished}, at most ${backfill.concurrency} at a time`],
          ['succeeded', String(backfill.succeeded)],
          ['failed', String(backfill.failed)],
          ['canceled', String(backfill.canceled)],
          ['skipped', String(backfill.skipped)],
          ['by', backfill.requested_by],
          ['created', shortTime(backfill.created_at)],
          ['finished', shortTime(backfill.finished_at)],
        ]),
      );
    },
  });
  line.add(group, 'cancel <id>', {
    description: 'stop a backfill and cancel its unfinished runs',
    examples: ['backfills cancel 01a1fc6d-…'],
    run: (session, _, [id = '']) => session.done((api) => api.backfills.cancel(id)),
  });
}
