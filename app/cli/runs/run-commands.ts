import { Option, type Command } from 'commander';
import { runStates, runTriggers } from '../../../domain/vocabulary.ts';
import type { Column } from '../terminal/table.ts';
import { addAsOf, addHistory, type AsOf } from '../records/history-commands.ts';
import { usageFault } from '../calling/faults.ts';
import { addPaging, listAll, shownOf, type Paging } from '../calling/listing.ts';
import { paintState } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { RunRecord } from '../calling/records.ts';
import { followRun, followRuns } from './run-follow.ts';
import { showRun } from './run-screen.ts';
import type { Session } from '../calling/session.ts';
import { between, shortTime } from '../terminal/times.ts';
import { wholeNumberOf } from '../terminal/values.ts';

/** `svc runs …` */
export function addRunCommands(line: CommandLine): Command {
  const group = line.group('runs', 'lists, shows, follows, cancels and retries runs');
  addList(line, group);
  const show = group.command('show <id>').description('shows a run: attempts, steps, log, output');
  addAsOf(show);
  line.does<AsOf>(show, ['runs show ce89cf0f-…'], async (session, { asOf }, [id = '']) => {
    const query = { as_of: asOf };
    const run = await session.client.ask((api) => api.runs.get(id, query));
    session.answer(run, () => showRun(session, run));
  });
  addHistory(line, group, 'runs');
  addFollow(line, group);
  const cancel = group.command('cancel <id>').description('ends a run that has not ended');
  line.does(cancel, ['runs cancel ce89cf0f-…'], async (session, _, [id = '']) => {
    const done = await session.client.ask((api) => api.runs.cancel(id));
    session.answer(done, () => done.message);
  });
  addRetry(line, group);
  addRedrive(line, group);
  return group;
}

interface ListOptions extends Paging {
  readonly task?: string;
  readonly state?: string;
  readonly trigger?: string;
  readonly since?: string;
  readonly until?: string;
  readonly errors?: boolean;
  readonly view?: string;
}

function addList(line: CommandLine, group: Command): void {
  const list = group
    .command('list')
    .alias('ls')
    .description('lists runs, newest first; skipped ones with --state skipped alone')
    .option('--task <id>', 'those of a task')
    .addOption(new Option('--state <state>').choices([...runStates]))
    .addOption(new Option('--trigger <trigger>').choices([...runTriggers]))
    .option('--since <instant>', 'started after it')
    .option('--until <instant>', 'started before it; with --task, a date alone takes in that day')
    .option('--errors', 'errors at full length')
    .option('--view <name>', 'as of a moment: the views that `svc replay --into` made');
  addPaging(list);
  const examples = [
    'runs list --state failed --since 2026-11-20T00:00Z',
    'runs ls --task 01a1fc11-…',
  ];
  line.does<ListOptions>(list, examples, async (session, options) => {
    const { task, state, trigger, since, until, errors, view } = options;
    const times = { start_time: since, end_time: until };
    const query = { task_id: task, state, trigger, ...times, include_errors: errors, view };
    const page = await listAll<RunRecord>(session.client, '/runs', query, options);
    session.answer(page, () => {
      const rows = page.items.map((run) => [
        run.id,
        run.task_id,
        run.state,
        run.trigger,
        shortTime(run.started_at ?? run.run_at),
        between(run.started_at, run.finished_at),
        run.attempt,
        run.error ?? run.skip_reason,
      ]);
      const shown = session.table(columns(session, errors ?? false), rows, 'no runs');
      return `${shown}${shownOf(session, page, 'runs')}`;
    });
  });
}

const columns = ({ paint }: Session, wholeErrors: boolean): readonly Column[] => [
  { title: 'ID' },
  { title: 'TASK' },
  { title: 'STATE', paint: (text, state) => paintState(paint, state, text) },
  { title: 'TRIGGER' },
  { title: 'STARTED' },
  { title: 'TOOK', align: 'right' },
  { title: 'ATTEMPT', align: 'right' },
  wholeErrors ? { title: 'ERROR' } : { title: 'ERROR', most: 60 },
];

function addFollow(line: CommandLine, group: Command): void {
  const follow = group
    .command('follow [id]')
    .description('tells what a run does until it ends (exit code 1 if it fails), or all runs')
    .option('--task <id>', 'all runs of a task')
    .addOption(new Option('--state <state>', 'changes to a state').choices([...runStates]));
  type Options = { readonly task?: string; readonly state?: string };
  const examples = ['runs follow ce89cf0f-…', 'runs follow --state failed', 'runs follow --json'];
  line.does<Options>(follow, examples, async (session, { task, state }, [id]) => {
    if (id !== undefined) {
      if ((task ?? state) !== undefined) {
        throw usageFault('--task and --state are for following all runs');
      }
      return session.following(() => followRun(session, id));
    }
    await session.following(() => followRuns(session, { task_id: task, state }));
    return 0;
  });
}

const places = ['failed_step', 'start'] as const;
type Place = (typeof places)[number];

const fromStart = (): Option => new Option('--from <place>', 'where it begins').choices(places);

function addRetry(line: CommandLine, group: Command): void {
  const retry = group
    .command('retry <id>')
    .description('a new run in place of a failed one, from the failed step on')
    .addOption(fromStart());
  type Options = { readonly from?: Place };
  const examples = ['runs retry ce89cf0f-…', 'runs retry ce89cf0f-… --from start'];
  line.does<Options>(retry, examples, async (session, { from }, [id = '']) => {
    const done = await session.client.ask((api) => api.runs.retry(id, { from }));
    session.answer(done, () => `${done.message}: ${done.details.run_id}`);
  });
}

interface RedriveOptions {
  readonly task?: string;
  readonly createdBy?: string;
  readonly since?: string;
  readonly until?: string;
  readonly error?: string;
  readonly from?: Place;
  readonly limit?: number;
  readonly dryRun?: boolean;
}

function addRedrive(line: CommandLine, group: Command): void {
  const redrive = group
    .command('redrive')
    .description('retries all failed runs that pass the filters')
    .option('--task <id>', 'those of a task')
    .option('--created-by <agent>', "those of an agent's tasks")
    .option('--since <instant>', 'started after it')
    .option('--until <instant>', 'started before it')
    .option('--error <text>', 'whose error holds a text')
    .addOption(fromStart())
    .option('--limit <n>', 'at most so many, up to 1,000', wholeNumberOf(1, 1000))
    .option('--dry-run', 'only counts them');
  const examples = ['runs redrive --since 2026-11-20T00:00Z --error ECONNREFUSED --dry-run'];
  line.does<RedriveOptions>(redrive, examples, async (session, options) => {
    const { task, createdBy, since, until, error, from, limit, dryRun } = options;
    const named = { task_id: task, created_by: createdBy, error, from, limit };
    const body = { ...named, start_time: since, end_time: until, dry_run: dryRun ?? false };
    const done = await session.client.ask((api) => api.runs.redrive(body));
    session.answer(done, () => {
      const more = done.details.next_cursor === null ? '' : '; there are more: call it again';
      return `${done.message}${more}`;
    });
  });
}
