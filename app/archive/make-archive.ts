import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { toIso, type Clock } from '../../domain/clock.ts';
import { streams } from '../../domain/streams.ts';
import { statIfPresent } from '../../stores/folder.ts';
import { checkLog, copyLog, lastEventTypeOf } from '../../stores/sqlite/event-log/backup.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { rejectUnfinishedImport } from './archive-error.ts';
import { createFolderAtomically } from './durable-folder.ts';
import { writeEvents } from './export-log.ts';
import { copyKeys } from './key-files.ts';
import {
  describeFile,
  FORMAT,
  writeManifest,
  type CopyManifest,
  type EventsManifest,
  type Manifest,
} from './manifest.ts';
import { withTransfer, type LogPlace } from './open-transfer.ts';
import type { ArchiveProgress } from './progress.ts';

/** The log to archive, and the target. */
export interface ArchiveOrder {
  readonly place: LogPlace;
  /** The folder to create. */
  readonly target: string;
  readonly clock: Clock;
  readonly progress: ArchiveProgress;
  /** This release's version. */
  readonly release: string;
}

/**
 * Exports a log: its events as lines of JSON, with a manifest. The service can be running; events appended after the
 * start are left out.
 * @throws ArchiveError `refused` if the target exists or an import into the log is unfinished; EventStoreError
 *   `UNAVAILABLE`
 */
export const exportArchive = (order: ArchiveOrder): Promise<EventsManifest> =>
  exportEvents(order, false);

/**
 * Backs up a log and the keys of the data directory; the service can be running. An embedded log is copied as a file, a
 * server's log is exported.
 * @throws as {@link exportArchive}
 */
export async function makeBackup(order: ArchiveOrder): Promise<Manifest> {
  const { place, progress } = order;
  if (place.eventStoreUrl !== undefined) return exportEvents(order, true);
  // Fails if there is no log.
  await withTransfer(place, false, async () => {});
  return createFolderAtomically(order.target, async (folder) => {
    progress.stage('copying');
    const begun = beginningOf(order);
    const file = logFile(folder);
    const onShare = (share: number): void => progress.move(share);
    const copied = await copyLog(place.dataDirectory, file, onShare, progress.signal);
    progress.stage('checking');
    checkLog(folder);
    rejectUnfinishedImport(lastEventTypeOf(folder, streams.imports()));
    removeCompanions(file);
    const manifest: CopyManifest = {
      ...begun,
      kind: 'copy',
      engine: 'embedded',
      events: copied.events,
      first_position: copied.first,
      last_position: copied.last,
      log: await describeFile(folder, 'events.sqlite'),
      keys: await copyKeys(place.dataDirectory, folder),
    };
    return close(folder, manifest, progress);
  });
}

function exportEvents(order: ArchiveOrder, withKeys: boolean): Promise<EventsManifest> {
  const { place, target, progress } = order;
  return withTransfer(place, false, (log) =>
    createFolderAtomically(target, async (folder) => {
      progress.stage('exporting');
      const begun = beginningOf(order);
      const exported = await writeEvents(log, folder, progress);
      const keys = withKeys ? await copyKeys(place.dataDirectory, folder) : [];
      const manifest = { ...begun, kind: 'events', engine: log.engine, ...exported, keys } as const;
      return close(folder, manifest, progress);
    }),
  );
}

const beginningOf = ({ clock, release }: ArchiveOrder) =>
  ({ format: FORMAT, id: randomUUID(), made_at: toIso(clock.now()), release }) as const;

async function close<M extends Manifest>(
  folder: string,
  manifest: M,
  progress: ArchiveProgress,
): Promise<M> {
  progress.stage('closing');
  await writeManifest(folder, manifest);
  progress.signal.throwIfAborted();
  return manifest;
}

/** Removes the empty files that reading leaves beside a database. @throws Error if they are not empty */
export function removeCompanions(file: string): void {
  const wal = statIfPresent(`${file}-wal`);
  if ((wal?.size ?? 0) > 0) throw new Error(`${file} is incomplete without ${file}-wal`);
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true });
}
