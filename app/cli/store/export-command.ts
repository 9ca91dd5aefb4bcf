import { Option } from 'commander';
import { resolveTimestamp, TimestampError } from '../../../domain/schedule/timestamp.ts';
import { toIso } from '../../../domain/clock.ts';
import {
  runStates,
  runTriggers,
  type RunState,
  type RunTrigger,
} from '../../../domain/vocabulary.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import {
  exportEvents,
  exportFormats,
  type ExportedPart,
  type ExportFormat,
} from '../../analysis/export-events.ts';
import { exportRuns } from '../../analysis/export-runs.ts';
import { toFile, toScreen, type RowWriter } from '../../analysis/row-writer.ts';
import { exportArchive } from '../../archive/make-archive.ts';
import { onTransfer } from '../../archive/open-transfer.ts';
import type { ArchiveProgress } from '../../archive/progress.ts';
import { bytes } from './archive-commands.ts';
import { withScreen } from './archive-screen.ts';
import { CommandFault, exitCodes, usageFault } from '../calling/faults.ts';
import { onStore, storeSettings } from '../calling/on-store.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { several } from '../terminal/values.ts';

interface ExportOptions {
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
}

/**
 * `svc export`
 * @param release this release's version, for manifests
 */
export function addExportCommand(line: CommandLine, release: string): void {
  const command = line.program
    .command('export [folder]')
    .description('the whole log into a new folder, to be moved; or, with --format, rows to look at')
    .addOption(new Option('--format <format>', 'rows, and not a folder').choices(exportFormats))
    .addOption(
      new Option('--of <what>', 'rows of what').choices(['events', 'runs']).default('events'),
    )
    .option('--output <file>', 'where the rows go (the standard output)')
    .option('--since <instant>', 'events that occurred, runs that were queued, at or after it')
    .option('--until <instant>', 'and before this')
    .option('--task <id>', 'of one task: what was done to it, its fires and its runs')
    .option(
      '--kind <kind>',
      'events of streams of a kind, such as task or run; repeatable',
      several,
    )
    .option('--type <type>', 'events of a type, such as RunFailed; may be repeated', several)
    .addOption(new Option('--state <state>', 'runs in a state').choices(runStates))
    .addOption(new Option('--trigger <trigger>', 'runs of a trigger').choices(runTriggers))
    .option('--data-dir <folder>', 'the folder of the embedded stores (SVC_DATA_DIR; ./data)');
  const examples = [
    'export /moves/november',
    'export --format ndjson --type RunFailed --since 2026-11-01T00:00Z > failed.ndjson',
    'export --format csv --of runs --task 01a1fc11-0505-734a-8920-9c4c55a40f65 --output runs.csv',
  ];
  line.does<ExportOptions>(command, examples, async (session, options, [folder]) => {
    if (options.format === undefined) await move(session, options, folder, release);
    else await rows(session, options, options.format, folder);
  });
}

async function move(
  session: Session,
  options: ExportOptions,
  target: string | undefined,
  release: string,
): Promise<void> {
  if (target === undefined) throw usageFault('a folder for the log, or --format for rows?');
  const given = rowOptions.filter((name) => options[name] !== undefined);
  if (given.length > 0) throw usageFault(`--${given.join(', --')} goes with --format`);
  const { clock, surroundings } = session;
  const place = storeSettings(surroundings.env, options.dataDir);
  const manifest = await withScreen(session, (progress) =>
    exportArchive({ place, target, clock, progress, release }),
  );
  session.answer({ folder: target, manifest }, () => {
    const size = `${manifest.events.toLocaleString('en')} events, ${bytes(manifest.log.bytes)}`;
    const content = `the content has the SHA-256 ${manifest.content_sha256}`;
    return `${session.paint.good(`exported to ${target}`)}: ${size}\n${content}`;
  });
}

const rowOptions = [
  'output',
  'since',
  'until',
  'task',
  'kind',
  'type',
  'state',
  'trigger',
] as const;

async function rows(
  session: Session,
  options: ExportOptions,
  format: ExportFormat,
  folder: string | undefined,
): Promise<void> {
  if (folder !== undefined) throw usageFault('rows go to --output or the standard output');
  const { of, output, since, until, task, kind, type, state, trigger } = options;
  const ofOthers = of === 'runs' ? (kind ?? type) : (state ?? trigger);
  if (ofOthers !== undefined) {
    throw usageFault('--kind and --type are for events, --state and --trigger for runs');
  }
  const filter = {
    since: instantOf('--since', since),
    until: instantOf('--until', until),
    taskId: task?.toLowerCase(),
  };
  const settings = storeSettings(session.surroundings.env, options.dataDir);
  const counted = await withScreen(session, async (progress) => {
    progress.stage('exporting');
    const open = (): Promise<RowWriter> =>
      output === undefined ? Promise.resolve(toScreen(session.surroundings.out)) : toFile(output);
    if (of === 'events') {
      return onTransfer(settings, false, async (log) =>
        writeRows(
          await open(),
          exportEvents(log, format, { ...filter, kinds: kind, types: type }),
          progress,
        ),
      );
    }
    return onStore(settings, async ({ readModel }) => {
      if ((await readModel.liveGeneration(runsProjection)) === null) {
        const how = 'the service makes it when it runs; --of events reads the log itself';
        throw new CommandFault(exitCodes.conflict, `there is no view of runs yet: ${how}`);
      }
      const parts = exportRuns(readModel, format, { ...filter, state, trigger });
      return writeRows(await open(), parts, progress);
    });
  });
  const where = output === undefined ? '' : ` to ${output}`;
  session.aside(`${counted.toLocaleString('en')} ${of}${where}`);
}

async function writeRows(
  writer: RowWriter,
  parts: AsyncGenerator<ExportedPart>,
  progress: ArchiveProgress,
): Promise<number> {
  let [count, read] = [0, 0];
  try {
    for await (const part of parts) {
      progress.signal.throwIfAborted();
      if (part.text !== '') await writer.write(part.text);
      count += part.count;
      read += part.read;
      progress.move(part.share, read);
    }
    await writer.finish();
    return count;
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}

function instantOf(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return toIso(resolveTimestamp(text, 'UTC').at);
  } catch (error) {
    if (error instanceof TimestampError) throw usageFault(`${option}: ${error.message}`);
    throw error;
  }
}
