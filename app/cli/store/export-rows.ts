import { exportEvents } from '../../../api/exporting/event-rows.ts';
import type { ExportedPart, ExportFormat } from '../../../api/exporting/export-formats.ts';
import { exportRuns } from '../../../api/exporting/run-rows.ts';
import { toIso } from '../../../domain/clock.ts';
import { catalogue } from '../../../domain/events/catalogue.ts';
import { counted } from '../../../domain/explain/words.ts';
import { load } from '../../../domain/handle.ts';
import { isUuid } from '../../../domain/ids.ts';
import type { WantedEvents } from '../../../domain/log-transfer.ts';
import { noSecretValues } from '../../../domain/pipeline/pipeline-secrets.ts';
import {
  parseInstant,
  parseTimestamp,
  TimestampError,
  type DayEdge,
} from '../../../domain/schedule/timestamp.ts';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
import { EventPayloads } from '../../../projections/reading/event-payloads.ts';
import { streamKinds, streams } from '../../../domain/streams.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { toFile, toScreen, type RowWriter } from '../../analysis/row-writer.ts';
import { storedNames } from '../../analysis/stored-names.ts';
import { storedTasks } from '../../analysis/stored-tasks.ts';
import { withTransfer } from '../../archive/open-transfer.ts';
import type { ArchiveProgress } from '../../archive/progress.ts';
import { settingOf } from '../../configuration/setting-readers.ts';
import type { StoreSettings } from '../../stores.ts';
import { CommandError, exitCodes, usageError } from '../calling/command-errors.ts';
import { storeSettings, withStores } from '../calling/open-stores.ts';
import type { Session } from '../calling/session.ts';
import { withProgress } from './archive-progress.ts';
import type { ExportOptions } from './export-options.ts';
import { exportFromService } from './export-from-service.ts';

/** Exports rows of events or runs to a file or standard output, from the store or a service. */
export async function exportRows(
  session: Session,
  options: ExportOptions,
  format: ExportFormat,
  folder: string | undefined,
): Promise<void> {
  if (folder !== undefined) throw usageError('rows are written to --output or standard output');
  const { of, output, since, until, task, kind, type, state, trigger } = options;
  if ((of === 'runs' ? (kind ?? type) : (state ?? trigger)) !== undefined) {
    throw usageError('--kind and --type are for events, --state and --trigger for runs');
  }
  checkKnown('--kind', kind, [...streamKinds(), 'demo'], 'ext_');
  checkKnown('--type', type, Object.keys(catalogue));
  if (task !== undefined && !isUuid(task)) throw usageError('--task must be a UUID');
  if (usesService(session, options)) {
    reportRows(session, options, await exportFromService(session, options, format));
    return;
  }
  if (options.cursor !== undefined) throw usageError('--cursor can only be used with --url');
  const taskId = task?.toLowerCase();
  const settings = storeSettings(session.environment.env, options.dataDir);
  const zone = (): Promise<string | null> => zoneOfTask(settings, taskId);
  const filter = {
    since: await parseOption('--since', since, zone, 'first'),
    until: await parseOption('--until', until, zone, 'after'),
    taskId,
  };
  const open = async (): Promise<RowWriter> =>
    output === undefined ? toScreen(session.environment.out) : toFile(output);
  const rows = await withProgress(session, async (progress) => {
    progress.stage('exporting');
    if (of === 'events') {
      const events = { ...filter, kinds: kind, types: type };
      return withTransfer(settings, false, (log) =>
        withStores(settings, async ({ store }) => {
          const source = { parts: (wanted: WantedEvents) => log.contents(wanted) };
          const parts = exportEvents(source, format, events, storedNames(store));
          return writeRows(await open(), parts, progress);
        }),
      );
    }
    return withStores(settings, async ({ readModel, store }) => {
      if ((await readModel.liveGeneration(runsProjection)) === null) {
        const hint = 'start the service to build it, or use --of events';
        throw new CommandError(exitCodes.conflict, `there is no view of runs yet; ${hint}`);
      }
      const names = storedNames(store);
      const params = {
        pinnedTasks: storedTasks(store),
        eventPayloads: new EventPayloads(store),
        secrets: noSecretValues,
      };
      const reading = { names, params };
      const wanted = { reach: EVERY_NAMESPACE, ...filter, state, trigger };
      const parts = exportRuns(readModel, format, wanted, reading);
      return writeRows(await open(), parts, progress);
    });
  });
  reportRows(session, options, rows);
}

/** Prints how many rows were written, and where. */
function reportRows(session: Session, { of, output }: ExportOptions, rows: number): void {
  const where = output === undefined ? '' : ` to ${output}`;
  session.aside(`${counted(rows, of === 'events' ? 'event' : 'run')}${where}`);
}

/** Whether a service is named and no store. @throws CommandError if both are given as options */
function usesService(
  { urlOption, environment: { env } }: Session,
  options: ExportOptions,
): boolean {
  const { dataDir } = options;
  if (urlOption !== undefined && dataDir !== undefined) {
    throw usageError('--url names a service and --data-dir a store; give only one');
  }
  if (urlOption !== undefined) return true;
  const stores = [dataDir, settingOf(env, 'SVC_DATA_DIR'), settingOf(env, 'SVC_EVENT_STORE_URL')];
  return settingOf(env, 'SVC_URL') !== undefined && stores.every((each) => each === undefined);
}

/**
 * @param openPrefix the prefix of further valid values
 * @throws CommandError for a value that no event has, instead of an empty export
 */
function checkKnown(
  option: string,
  values: readonly string[] | undefined,
  known: readonly string[],
  openPrefix?: string,
): void {
  const isOpen = (value: string): boolean =>
    openPrefix !== undefined && value.startsWith(openPrefix);
  const unknown = values?.find((value) => !known.includes(value) && !isOpen(value));
  if (unknown === undefined) return;
  const others = openPrefix === undefined ? '' : `, ${openPrefix}…`;
  throw usageError(`${option} ${unknown} is unknown; use one of ${known.join(', ')}${others}`);
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
 * An instant in the service's format. Without an offset it is in the zone of the task, or rejected without one.
 * @param edge the meaning of a date without a time
 */
async function parseOption(
  option: string,
  value: string | undefined,
  zoneOf: () => Promise<string | null>,
  edge: DayEdge,
): Promise<string | undefined> {
  if (value === undefined) return undefined;
  try {
    const { offset } = parseTimestamp(value);
    return toIso(parseInstant(value, offset === null ? await zoneOf() : null, edge));
  } catch (error) {
    if (error instanceof TimestampError) throw usageError(`${option}: ${error.message}`);
    throw error;
  }
}

async function zoneOfTask(
  settings: StoreSettings,
  taskId: string | undefined,
): Promise<string | null> {
  if (taskId === undefined) return null;
  return withStores(settings, async ({ store }) => {
    const { state } = await load(store, streams.task(taskId), taskFold);
    return state.status === 'none' ? null : state.definition.timezone;
  });
}
