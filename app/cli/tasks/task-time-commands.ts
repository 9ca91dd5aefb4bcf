import type { Command } from 'commander';
import { usageFault } from '../calling/faults.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import { addScheduleOptions, scheduleOf, type TaskFieldOptions } from './task-fields.ts';
import { shortTime } from '../terminal/times.ts';
import { wholeNumberOf } from '../terminal/values.ts';

interface Previewed {
  /** The schedule in words. */
  readonly schedule_text: string;
  readonly fires: readonly {
    readonly at: string;
    readonly local: string;
    readonly note: string | null;
  }[];
  readonly warnings: readonly string[];
}

/** `svc tasks explain` and `svc tasks preview`: about the times of a task. */
export function addTaskTimeCommands(line: CommandLine, group: Command): void {
  addExplain(line, group);
  addPreview(line, group);
}

function addExplain(line: CommandLine, group: Command): void {
  const explain = group
    .command('explain <id>')
    .description('why it did or did not fire at or about an instant, from the log')
    .option('--at <instant>', "ISO 8601; without an offset in the task's zone (now)");
  const examples = ['tasks explain 01a1fc11-… --at 2026-11-23T09:00'];
  type Options = { readonly at?: string };
  line.does<Options>(explain, examples, async (session, options, [id = '']) => {
    const at = options.at ?? new Date(session.clock.now()).toISOString();
    const said = await session.client.ask((api) => api.tasks.explain(id, { at }));
    session.answer(said, () => {
      const { paint } = session;
      const head = said.fired ? paint.good('fired') : paint.warning(said.reason ?? 'not decided');
      const facts = session.fields([
        ['at', shortTime(said.at)],
        ['run', said.run_id],
        ['fire before', shortTime(said.previous_fire)],
        ['fire after', shortTime(said.next_fire)],
      ]);
      const rows = said.evidence.map(({ at: when, type, stream, revision, actor, reason }) => [
        shortTime(when),
        type,
        `${stream}@${revision}`,
        actor,
        reason,
      ]);
      const columns = ['WHEN', 'EVENT', 'STREAM', 'BY', 'BECAUSE'].map((title) => ({ title }));
      const evidence = rows.length === 0 ? '' : `\n\n${session.table(columns, rows, '')}`;
      return `${head}: ${printable(said.message)}\n\n${facts}${evidence}`;
    });
  });
}

function addPreview(line: CommandLine, group: Command): void {
  const preview = group
    .command('preview [id]')
    .description('when a task will fire, or a schedule that none has yet')
    .option('--from <instant>', 'after when (now)')
    .option('--count <n>', 'how many, 1 to 1,000', wholeNumberOf(1, 1000), 10);
  addScheduleOptions(preview);
  type Options = TaskFieldOptions & { readonly from?: string; readonly count: number };
  const examples = [
    'tasks preview 01a1fc11-…',
    'tasks preview --cron "30 2 * * *" --zone Europe/Berlin --from 2027-03-26T00:00Z --count 4',
  ];
  line.does<Options>(preview, examples, async (session, options, [id]) => {
    const schedule = scheduleOf(options);
    if ((id === undefined) === (schedule['schedule_kind'] === undefined)) {
      throw usageFault("either a task's id, or one of --cron, --rrule, --once, --event");
    }
    if (id !== undefined && options.zone !== undefined) {
      throw usageFault("a task's own zone counts: --zone is for a schedule that no task has");
    }
    const subject = id === undefined ? schedule : { task_id: id };
    const { from, count } = options;
    const body = { ...subject, count, ...(from === undefined ? {} : { from }) };
    const answer = await session.client.post<Previewed>('/schedules/preview', { body });
    session.answer(answer, () => {
      const columns = [{ title: 'AT' }, { title: 'LOCAL' }, { title: 'NOTE' }];
      const rows = answer.fires.map(({ at, local, note }) => [shortTime(at), local, note]);
      const warnings = answer.warnings.map((each) => `\n${session.paint.warning(each)}`);
      const words = printable(answer.schedule_text);
      return `${words}\n\n${session.table(columns, rows, 'no fires')}${warnings.join('')}`;
    });
  });
}
