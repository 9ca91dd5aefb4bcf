import { Option } from 'commander';
import {
  runStates,
  runTriggers,
  type RunState,
  type RunTrigger,
} from '../../../domain/vocabulary.ts';
import { exportFormats, type ExportFormat } from '../../../api/exporting/export-formats.ts';
import type { CommandLine } from '../program.ts';
import { several } from '../terminal/values.ts';

/** What `svc export` is told. */
export interface ExportOptions {
  readonly dataDir?: string;
  readonly format?: ExportFormat;
  readonly of: 'events' | 'runs';
  readonly output?: string;
  readonly since?: string;
  readonly until?: string;
  readonly task?: string;
  readonly kind?: readonly string[];
  readonly type?: readonly string[];
  readonly state?: RunState;
  readonly trigger?: RunTrigger;
  readonly cursor?: string;
}

/**
 * `svc export`
 * @param release this release's version, for manifests
 */
export function addExportCommand(line: CommandLine, release: string): void {
  const command = line.program
    .command('export [folder]')
    .description('the whole log into a new folder, to be moved; or, with --format, rows to look at')
    .addOption(
      new Option('--format <format>', 'rows, and not a folder; with --url from a service').choices(
        exportFormats,
      ),
    )
    .addOption(
      new Option('--of <what>', 'rows of what').choices(['events', 'runs']).default('events'),
    )
    .option('--output <file>', 'where the rows go (the standard output)')
    .option('--since <instant>', 'events that occurred, runs that were queued, at or after it')
    .option('--until <instant>', 'and before this; with --task, a date alone takes in that day')
    .option('--task <id>', 'of one task: what was done to it, its fires and its runs')
    .option(
      '--kind <kind>',
      'events of streams of a kind, such as task or run; repeatable',
      several,
    )
    .option('--type <type>', 'events of a type, such as RunFailed; may be repeated', several)
    .addOption(new Option('--state <state>', 'runs in a state').choices(runStates))
    .addOption(new Option('--trigger <trigger>', 'runs of a trigger').choices(runTriggers))
    .option('--cursor <id>', 'behind this run, or this position of the log; with --url')
    .option('--data-dir <folder>', 'the folder of the embedded stores (SVC_DATA_DIR; ./data)');
  const examples = [
    'export /moves/november',
    'export --format ndjson --type RunFailed --since 2026-11-01T00:00Z > failed.ndjson',
    'export --format csv --of runs --task 01a1fc11-0505-734a-8920-9c4c55a40f65 --output runs.csv',
    'export --url https://svc.example.com --format csv --of runs --state failed --output runs.csv',
  ];
  line.does<ExportOptions>(command, examples, async (session, options, [folder]) => {
    const { exportLog, exportRows } = await import('./export.ts');
    if (options.format === undefined) await exportLog(session, options, folder, release);
    else await exportRows(session, options, options.format, folder);
  });
}
