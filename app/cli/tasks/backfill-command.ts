import { Option, type Command } from 'commander';
import { backfillScopes } from '../../../domain/vocabulary.ts';
import type { CommandLine } from '../program.ts';
import type { Done } from '../calling/records.ts';
import { shortTime } from '../terminal/times.ts';
import { part, wholeNumberOf } from '../terminal/values.ts';

interface BackfillOptions {
  readonly from: string;
  readonly to: string;
  readonly only?: string;
  readonly concurrency?: number;
  readonly dryRun?: boolean;
}

/** `svc tasks backfill`: runs the times of a span of the past. */
export function addBackfillCommand(line: CommandLine, group: Command): void {
  const backfill = group
    .command('backfill <id>')
    .description('runs the times of its schedule in a span of the past, a few at a time')
    .requiredOption('--from <instant>', 'where the span begins')
    .requiredOption('--to <instant>', 'where it ends; a date alone takes in that day')
    .addOption(
      new Option('--only <which>', 'those without a run, or all').choices([...backfillScopes]),
    )
    .option('--concurrency <n>', 'how many at a time', wholeNumberOf(1, 100))
    .option('--dry-run', 'only says which they are');
  const examples = ['tasks backfill 01a1fc11-… --from 2026-11-01 --to 2026-11-08 --dry-run'];
  line.does<BackfillOptions>(backfill, examples, async (session, options, [id]) => {
    const { from, to, only, concurrency, dryRun: dry_run = false } = options;
    const body = { from, to, only, concurrency, dry_run };
    const done = await session.client.post<Done>(`/tasks/${part(id)}/backfill`, { body });
    session.answer(done, () => {
      const facts = Object.entries(done.details).flatMap(([name, value]): [string, string][] =>
        typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
          ? [[name, String(value)]]
          : [],
      );
      return `${done.message}\n\n${session.fields(facts)}${timesOf(done.details)}`;
    });
  });
}

/** The times that a backfill would run: the answer names the first of them. */
function timesOf({ first, to_request }: Done['details']): string {
  if (!Array.isArray(first) || first.length === 0) return '';
  const times = first.map((time) => shortTime(String(time)));
  const others = Number(to_request) - times.length;
  return ['', '', ...times, ...(others > 0 ? [`and ${others} more`] : [])].join('\n');
}
