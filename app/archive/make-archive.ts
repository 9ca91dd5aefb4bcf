import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { toIso, type Clock } from '../../domain/clock.ts';
import { streams } from '../../domain/streams.ts';
import { checkLog, copyLog, lastTypeOf } from '../../stores/sqlite/event-log/backup.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { exportLog } from './export-log.ts';
import { rejectUnfinishedImport } from './unfinished-import.ts';
import { copyKeys } from './key-files.ts';
import {
  describeFile,
  format,
  writeManifest,
  type CopyManifest,
  type EventsManifest,
  type Manifest,
} from './manifest.ts';
import { onTransfer, type LogPlace } from './open-transfer.ts';
import type { ArchiveProgress } from './progress.ts';
import { makeWholeFolder } from './durable-folder.ts';
import { statIfPresent } from '../../stores/folder.ts';

interface Making {
  readonly place: LogPlace;
  /** The folder to be made. */
  readonly target: string;
  readonly clock: Clock;
  readonly progress: ArchiveProgress;
  /** Version of this release. */
  readonly release: string;
}

/**
 * Exports a log: all its events as lines of JSON, with a manifest. The service may run meanwhile; what it appends after
 * the beginning is left out.
 * @throws ArchiveFault `refused` where the target is there, and for a log that an import was broken off on;
 *   EventStoreError `UNAVAILABLE`
 */
export function exportArchive(making: Making): Promise<EventsManifest> {
  return onTransfer(making.place, false, (log) =>
    makeWholeFolder(making.target, async (folder) => {
      making.progress.stage('exporting');
      const made_at = toIso(making.clock.now());
      const exported = await exportLog(log, folder, making.progress);
      const manifest: EventsManifest = {
        ...{ format, kind: 'events', id: randomUUID(), made_at, release: making.release },
        engine: log.engine,
        ...exported,
        keys: [],
      };
      return closed(folder, manifest, making.progress);
    }),
  );
}

/**
 * Backs a log up, of a service that may run: the embedded log as a copy of its file at one moment, that of a server as
 * an export; and beside it the keys of the data directory.
 * @throws as {@link exportArchive}
 */
export async function makeBackup(making: Making): Promise<Manifest> {
  const { place, progress, clock, release } = making;
  if (place.eventStoreUrl !== undefined) {
    return onTransfer(place, false, (log) =>
      makeWholeFolder(making.target, async (folder) => {
        progress.stage('exporting');
        const made_at = toIso(clock.now());
        const exported = await exportLog(log, folder, progress);
        const keys = await copyKeys(place.dataDirectory, folder);
        const manifest: EventsManifest = {
          ...{ format, kind: 'events', id: randomUUID(), made_at, release, engine: log.engine },
          ...exported,
          keys,
        };
        return closed(folder, manifest, progress);
      }),
    );
  }
  // Says so where there is no log.
  await onTransfer(place, false, async () => {});
  return makeWholeFolder(making.target, async (folder) => {
    progress.stage('copying');
    const made_at = toIso(clock.now());
    const file = logFile(folder);
    const copied = await copyLog(
      place.dataDirectory,
      file,
      (share) => progress.move(share),
      progress.signal,
    );
    progress.stage('checking');
    checkLog(folder);
    rejectUnfinishedImport(lastTypeOf(folder, streams.imports()));
    removeCompanions(file);
    const manifest: CopyManifest = {
      ...{ format, kind: 'copy', id: randomUUID(), made_at, release, engine: 'embedded' },
      events: copied.events,
      first_position: copied.first,
      last_position: copied.last,
      log: await describeFile(folder, 'events.sqlite'),
      keys: await copyKeys(place.dataDirectory, folder),
    };
    return closed(folder, manifest, progress);
  });
}

async function closed<M extends Manifest>(
  folder: string,
  manifest: M,
  progress: ArchiveProgress,
): Promise<M> {
  progress.stage('closing');
  await writeManifest(folder, manifest);
  progress.signal.throwIfAborted();
  return manifest;
}

/** Looking into a database leaves empty files beside it. @throws Error where they are not empty */
export function removeCompanions(file: string): void {
  const wal = statIfPresent(`${file}-wal`);
  if ((wal?.size ?? 0) > 0) throw new Error(`${file} is not whole without ${file}-wal`);
  for (const suffix of ['-wal', '-shm']) rmSync(join(file + suffix), { force: true });
}
