import {
  parseInstant,
  readTimestamp,
  TimestampError,
  type DayEdge,
} from '../../../domain/schedule/timestamp.ts';
import { toIso } from '../../../domain/clock.ts';
import { catalogue } from '../../../domain/events/catalogue.ts';
import { counted } from '../../../domain/explain/words.ts';
import { load } from '../../../domain/handle.ts';
import type { WantedEvents } from '../../../domain/log-transfer.ts';
import { isUuid } from '../../../domain/ids.ts';
import { streamKinds, streams } from '../../../domain/streams.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { exportEvents } from '../../../api/exporting/event-rows.ts';
import type { ExportedPart, ExportFormat } from '../../../api/exporting/export-formats.ts';
import { exportRuns } from '../../../api/exporting/run-rows.ts';
import { storedNames } from '../../analysis/stored-names.ts';
import { toFile, toScreen, type RowWriter } from '../../analysis/row-writer.ts';
import { exportArchive } from '../../archive/make-archive.ts';
import { onTransfer } from '../../archive/open-transfer.ts';
import type { ArchiveProgress } from '../../archive/progress.ts';
import type { StoreSettings } from '../../stores.ts';
import { withScreen } from './archive-screen.ts';
import type { ExportOptions } from './export-command.ts';
import { CommandFault, exitCodes, usageFault } from '../calling/faults.ts';
import { textOf } from '../../configuration/setting-readers.ts';
import { onStore, storeSettings } from '../calling/on-store.ts';
import type { Session } from '../calling/session.ts';
import { bytes } from '../terminal/bytes.ts';

/**
 * The whole log into a new folder.
 *
 * @param release this release's version, for the manifest
 */
export async function exportLog(
  session: Session,
  options: ExportOptions,
  target: string | undefined,
  release: string,
): Promise<void> {
  if (target === undefined || target.trim() === '')
    throw usageFault('a folder for the log, or --format for rows?');
  const given: string[] = rowOptions.filter((name) => options[name] !== undefined);
  if (options.of !== 'events') given.unshift('of');
  if (given.length > 0) throw usageFault(`--${given.join(', --')} goes with --format`);
  if (session.urlOption !== undefined) {
    throw usageFault('a log is exported from its store; --url goes with --format');
  }
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
  'cursor',
] as const;

/** Rows of events or of runs, to a file or the screen. */
export async function exportRows(
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
  checkKnown('--kind', kind, [...streamKinds(), 'demo'], 'ext_');
  checkKnown('--type', type, Object.keys(catalogue));
  if (task !== undefined && !isUuid(task)) throw usageFault('--task is no UUID');
  if (goesByUrl(session, options)) {
    const { exportFromService } = await import('./export-from-service.ts');
    return exportFromService(session, options, format);
  }
  if (options.cursor !== undefined) throw usageFault('--cursor goes with --url');
  const taskId = task?.toLowerCase();
  const settings = storeSettings(session.surroundings.env, options.dataDir);
  const zone = (): Promise<string | null> => zoneOfTask(settings, taskId);
  const filter = {
    since: await instantOf('--since', since, zone),
    until: await instantOf('--until', until, zone, 'after'),
    taskId,
  };
  const rows = await withScreen(session, async (progress) => {
    progress.stage('exporting');
    const open = (): Promise<RowWriter> =>
      output === undefined ? Promise.resolve(toScreen(session.surroundings.out)) : toFile(output);
    if (of === 'events') {
      const events = { ...filter, kinds: kind, types: type };
      return onTransfer(settings, false, (log) =>
        onStore(settings, async ({ store }) => {
          const source = { parts: (wanted: WantedEvents) => log.contents(wanted) };
          const parts = exportEvents(source, format, events, storedNames(store));
          return writeRows(await open(), parts, progress);
        }),
      );
    }
    return onStore(settings, async ({ readModel, store }) => {
      if ((await readModel.liveGeneration(runsProjection)) === null) {
        const how = 'the service makes it when it runs; --of events reads the log itself';
        throw new CommandFault(exitCodes.conflict, `there is no view of runs yet: ${how}`);
      }
      const parts = exportRuns(
        readModel,
        format,
        { ...filter, state, trigger },
        { names: storedNames(store) },
      );
      return writeRows(await open(), parts, progress);
    });
  });
  const where = output === undefined ? '' : ` to ${output}`;
  session.aside(`${counted(rows, of === 'events' ? 'event' : 'run')}${where}`);
}

/** Whether rows come from a service: where one is named, and no store. @throws CommandFault where both are */
function goesByUrl({ urlOption, surroundings: { env } }: Session, options: ExportOptions): boolean {
  const { dataDir } = options;
  if (urlOption !== undefined && dataDir !== undefined) {
    throw usageFault('--url names a service and --data-dir a store; which one has the rows?');
  }
  if (urlOption !== undefined) return true;
  const stores = [dataDir, textOf(env, 'SVC_DATA_DIR'), textOf(env, 'SVC_EVENT_STORE_URL')];
  return textOf(env, 'SVC_URL') !== undefined && stores.every((each) => each === undefined);
}

/**
 * @param open how others begin that may be there too
 * @throws CommandFault for a value that no event can have: nothing would come of it, and nobody would know why
 */
function checkKnown(
  option: string,
  values: readonly string[] | undefined,
  known: readonly string[],
  open?: string,
): void {
  const isOpen = (value: string): boolean => open !== undefined && value.startsWith(open);
  const unknown = values?.find((value) => !known.includes(value) && !isOpen(value));
  if (unknown === undefined) return;
  const others = open === undefined ? '' : `, ${open}…`;
  throw usageFault(`${option} ${unknown} is unknown; there are ${known.join(', ')}${others}`);
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

/**
 * A time as the service writes it. One without an offset is of the zone of the task, and refused where there is none.
 * @param edge what a date without a time means
 */
async function instantOf(
  option: string,
  text: string | undefined,
  zoneOf: () => Promise<string | null>,
  edge: DayEdge = 'first',
): Promise<string | undefined> {
  if (text === undefined) return undefined;
  try {
    const { offset } = readTimestamp(text);
    return toIso(parseInstant(text, offset === null ? await zoneOf() : null, edge));
  } catch (error) {
    if (error instanceof TimestampError) throw usageFault(`${option}: ${error.message}`);
    throw error;
  }
}

function zoneOfTask(settings: StoreSettings, taskId: string | undefined): Promise<string | null> {
  if (taskId === undefined) return Promise.resolve(null);
  return onStore(settings, async ({ store }) => {
    const { state } = await load(store, streams.task(taskId), taskFold);
    return state.status === 'none' ? null : state.definition.timezone;
  });
}
