import type { Command } from 'commander';
import type { Explanation } from '../../../api/client/client.ts';
import { usageError } from '../calling/command-errors.ts';
import { text, wholeNumber, withDefault } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { scheduleOf, scheduleOptions } from './task-fields.ts';

interface Preview {
  /** The schedule in words. */
  readonly schedule_text: string;
  readonly fires: readonly {
    readonly at: string;
    readonly local: string;
    readonly note: string | null;
  }[];
  readonly warnings: readonly string[];
}

/** `svc tasks explain` and `svc tasks preview` */
export function addScheduleCommands(line: CommandLine, group: Command): void {
  line.add(group, 'explain <id>', {
    description: 'explain from the log why a task fired, or did not fire, around an instant',
    options: {
      at: text('instant', "ISO 8601; without an offset in the task's zone (default: now)"),
    },
    examples: ['tasks explain 01a1fc11-… --at 2026-11-23T09:00'],
    run: async (session, options, [id = '']) => {
      const at = options.at ?? new Date(session.clock.now()).toISOString();
      const answer = await session.client.call((api) => api.tasks.explain(id, { at }));
      session.answer(answer, () => {
        const { paint } = session;
        const head = answer.fired
          ? paint.good('fired')
          : paint.warning(answer.reason ?? 'not decided');
        const facts = session.fields([
          ['at', shortTime(answer.at)],
          ['run', answer.run_id],
          ['fire before', shortTime(answer.previous_fire)],
          ['fire after', shortTime(answer.next_fire)],
        ]);
        const evidence = session.table<Explanation['evidence'][number]>(
          [
            { title: 'WHEN', cell: ({ at: time }) => shortTime(time) },
            { title: 'EVENT', cell: ({ type }) => type },
            { title: 'STREAM', cell: ({ stream, revision }) => `${stream}@${revision}` },
            { title: 'BY', cell: ({ actor }) => actor },
            { title: 'REASON', cell: ({ reason }) => reason },
          ],
          answer.evidence,
          '',
        );
        return `${head}: ${printable(answer.message)}\n\n${facts}${evidence && `\n\n${evidence}`}`;
      });
    },
  });
  line.add(group, 'preview [id]', {
    description: 'show the next fires of a task or of a new schedule',
    options: {
      from: text('instant', 'fires after this (default: now)'),
      count: withDefault(wholeNumber('n', 'number of fires, 1-1,000', 1, 1000), 10),
      ...scheduleOptions(),
    },
    examples: [
      'tasks preview 01a1fc11-…',
      'tasks preview --cron "30 2 * * *" --zone Europe/Berlin --from 2027-03-26T00:00Z --count 4',
    ],
    run: async (session, options, [id]) => {
      const schedule = scheduleOf(options);
      if ((id === undefined) === (schedule['schedule_kind'] === undefined)) {
        throw usageError("give a task's id, or one of --cron, --rrule, --once, --event");
      }
      if (id !== undefined && options.zone !== undefined) {
        throw usageError("--zone cannot be used with a task's id; the task has its own zone");
      }
      const subject = id === undefined ? schedule : { task_id: id };
      const { from, count } = options;
      const body = { ...subject, count, ...(from === undefined ? {} : { from }) };
      const answer = await session.client.post<Preview>('/schedules/preview', { body });
      session.answer(answer, () => {
        const table = session.table<Preview['fires'][number]>(
          [
            { title: 'AT', cell: ({ at }) => shortTime(at) },
            { title: 'LOCAL', cell: ({ local }) => local },
            { title: 'NOTE', cell: ({ note }) => note },
          ],
          answer.fires,
          'no fires',
        );
        const warnings = answer.warnings.map((each) => `\n${session.paint.warning(each)}`);
        return `${printable(answer.schedule_text)}\n\n${table}${warnings.join('')}`;
      });
    },
  });
}
