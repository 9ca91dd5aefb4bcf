import { chmod, copyFile } from 'node:fs/promises';
import { constants, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { beginImport, completeImport } from '../../domain/operators/import.ts';
import { holdCommand, operationsFold, type HoldOrder } from '../../domain/operators/operations.ts';
import { dropReplay, replaysFold } from '../../domain/operators/replays.ts';
import { streams } from '../../domain/streams.ts';
import { silent } from '../../observability/telemetry.ts';
import { checkLog } from '../../stores/sqlite/event-log/backup.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { fileInPlaceOf, makeFolder } from '../../stores/folder.ts';
import { putWhereNothingIs } from '../free-name.ts';
import { ArchiveFault } from './archive-fault.ts';
import {
  isUnfinished,
  makeUnfinished,
  removeUnfinished,
  syncFile,
  syncFolder,
} from './durable-folder.ts';
import { importEvents } from './import-log.ts';
import { isKeyOf } from './key-files.ts';
import { removeCompanions } from './make-archive.ts';
import { checkFile, readManifest, type EventsManifest, type Manifest } from './manifest.ts';
import { onTransfer, type LogPlace } from './open-transfer.ts';
import type { ArchiveProgress } from './progress.ts';
import { STAGING } from './staging.ts';

interface Filling {
  readonly place: LogPlace;
  /** The folder of the archive. */
  readonly archive: string;
  readonly clock: Clock;
  readonly progress: ArchiveProgress;
  /** In the caller's words. */
  readonly reason: string | undefined;
}

/** What a restore has brought. */
export interface Restored<T> {
  readonly manifest: Manifest;
  /** The service is on hold by this order. */
  readonly hold: HoldOrder;
  /** What was made out of the restored log. */
  readonly found: T;
}

/** What an import has brought. */
export interface ImportedArchive {
  readonly manifest: EventsManifest;
  readonly events: number;
  readonly found: number;
  readonly left: number;
  readonly content_sha256: string;
  readonly in_order: boolean;
}

/**
 * Restores a backup (or an export) into an empty data directory or server. The restored log is on hold before any
 * service can start on it: what is owed since the backup is fired when an operator says so, and how.
 *
 * From the moment that the log has its place this process must not open it. Connections that it has closed stay until
 * their statements are collected, and whatever it opens of the same file shares their index of the WAL (SQLite's
 * `-shm`), which is the one in the folder that is gone: beside a service that has started meanwhile it would read an
 * older state, and could cut off a WAL that the other has written.
 *
 * @param look makes out what the caller wants to know of the restored log, before it has its place
 * @throws ArchiveFault `refused` where the target is not empty, `damaged` for a backup that is not whole
 */
export async function restore<T>(
  filling: Filling,
  look: (place: LogPlace) => Promise<T>,
): Promise<Restored<T>> {
  const { archive, place, progress } = filling;
  progress.stage('looking at the backup');
  const manifest = readManifest(archive);
  await checkFile(archive, manifest.log);
  for (const key of manifest.keys) await checkFile(archive, key);
  if (place.eventStoreUrl !== undefined) {
    const restored = await restoreToServer(filling, manifest);
    return { ...restored, found: await look(place) };
  }
  refuseUsedFolder(place.dataDirectory, archive, manifest);
  makeFolder(place.dataDirectory);
  const staging = makeUnfinished(place.dataDirectory, STAGING);
  try {
    await fillFolder(filling, manifest, staging);
    checkLog(staging);
    progress.stage('putting on hold');
    const hold = await onStoreIn({ ...place, dataDirectory: staging }, async (store) => {
      // A copy has the positions that it had.
      if (manifest.kind === 'events') await dropReplays(store, filling, manifest);
      return holdRestored(store, manifest, filling);
    });
    const found = await look({ ...place, dataDirectory: staging });
    removeCompanions(logFile(staging));
    progress.stage('closing');
    await putInPlace(staging, place.dataDirectory, archive, manifest);
    return { manifest, hold, found };
  } finally {
    removeUnfinished(staging);
  }
}

/**
 * Brings the events of an export into an empty log, or goes on with one that was broken off.
 * @throws ArchiveFault as {@link restore}
 */
export async function importArchive(
  filling: Filling & {
    /** Whether every event is to stand where it does in the archive, also where that takes longer. */
    readonly inOrder: boolean;
  },
): Promise<ImportedArchive> {
  const { archive, place, progress } = filling;
  progress.stage('looking at the export');
  const manifest = await readEvents(archive);
  const imported = await importInto(filling, manifest, filling.inOrder);
  await onStoreIn(place, async (store) => {
    await dropReplays(store, filling, manifest);
    const context = contextOf(filling, 'svc import', 'complete', manifest);
    await completeImport(store, manifest.id, imported.events, context);
  });
  return { manifest, ...imported };
}

async function restoreToServer(
  filling: Filling,
  manifest: Manifest,
): Promise<Omit<Restored<unknown>, 'found'>> {
  if (manifest.kind !== 'events') {
    const how = 'restore it into a folder, and move that by svc export and svc import';
    throw new ArchiveFault('refused', `this backup is a copy of an embedded log: ${how}`);
  }
  const { events } = await importInto(filling, manifest, false);
  filling.progress.stage('putting on hold');
  // Until the import is said to be completed no service starts: by then it is on hold.
  return onStoreIn(filling.place, async (store) => {
    await dropReplays(store, filling, manifest);
    const hold = await holdRestored(store, manifest, filling);
    const context = contextOf(filling, 'svc restore', 'complete', manifest);
    await completeImport(store, manifest.id, events, context);
    return { manifest, hold };
  });
}

async function readEvents(archive: string): Promise<EventsManifest> {
  const manifest = readManifest(archive);
  if (manifest.kind !== 'events') {
    throw new ArchiveFault('refused', `${archive} is a backup: svc restore takes it`);
  }
  await checkFile(archive, manifest.log);
  await checkFile(archive, manifest.truncations);
  return manifest;
}

function importInto(
  filling: Filling,
  manifest: EventsManifest,
  inOrder: boolean,
): ReturnType<typeof importEvents> {
  const { place, archive, progress } = filling;
  const context = contextOf(filling, 'svc import', 'begin', manifest);
  return onTransfer(place, true, (log) =>
    importEvents(log, archive, manifest, progress, {
      besides: context.correlationId,
      inOrder,
      onFit: async () => {
        await onStoreIn(place, (store) =>
          beginImport(store, manifest.id, manifest.events, context),
        );
      },
    }),
  );
}

async function fillFolder(filling: Filling, manifest: Manifest, staging: string): Promise<void> {
  const { archive, progress } = filling;
  for (const { file } of manifest.keys) {
    await copyPrivately(join(archive, file), join(staging, file));
    await syncFile(join(staging, file));
  }
  if (manifest.kind === 'copy') {
    progress.stage('copying');
    const file = logFile(staging);
    await copyPrivately(join(archive, manifest.log.file), file);
    await syncFile(file);
    progress.stage('checking');
    await checkFile(staging, manifest.log);
    return;
  }
  await checkFile(archive, manifest.truncations);
  const place = { dataDirectory: staging, eventStoreUrl: undefined };
  await onTransfer(place, true, (log) =>
    importEvents(log, archive, manifest, progress, {
      besides: correlationOf(manifest),
      inOrder: true,
      onFit: async () => {},
    }),
  );
}

/** For its owner alone: a copy has the mode of its original, which a backup may have lost on its way. */
async function copyPrivately(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o600);
}

/**
 * Everything else first: the log by its name is what makes it a store. Nothing that is there is overwritten: of two
 * restores at once, one has its place.
 * @throws ArchiveFault `refused` where the other was first
 */
async function putInPlace(
  staging: string,
  directory: string,
  archive: string,
  { keys }: Manifest,
): Promise<void> {
  const place = (from: string, to: string): void => {
    try {
      putWhereNothingIs(from, to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      // What an earlier try has left.
      if (isKeyOf(keys, archive, to)) return;
      const what = `${directory} was filled by somebody else meanwhile`;
      throw new ArchiveFault('refused', what, error);
    }
  };
  for (const { file } of keys) place(join(staging, file), join(directory, file));
  await syncFolder(directory);
  await syncFile(logFile(staging));
  place(logFile(staging), logFile(directory));
  await syncFolder(directory);
}

/** @throws ArchiveFault `refused` where the folder holds more than an earlier try has left */
function refuseUsedFolder(directory: string, archive: string, { keys }: Manifest): void {
  const file = fileInPlaceOf(directory);
  if (file !== null) {
    const why = `${file} is not a folder: SVC_DATA_DIR or --data-dir must name one`;
    throw new ArchiveFault('refused', `${directory} can't be made: ${why}`);
  }
  if (!existsSync(directory)) return;
  const strange = readdirSync(directory).filter(
    (name) =>
      !isUnfinished(name, STAGING) &&
      name !== 'lost+found' &&
      !isKeyOf(keys, archive, join(directory, name)),
  );
  if (strange.length === 0) return;
  const what = strange.slice(0, 5).join(', ');
  throw new ArchiveFault(
    'refused',
    `${directory} is not empty (${what}): restore into an empty one`,
  );
}

/** The order that the restored service is on hold by: a new one, unless it was on hold when it was backed up. */
async function holdRestored(
  store: EventStore,
  manifest: Manifest,
  filling: Filling,
): Promise<HoldOrder> {
  const { state } = await load(store, streams.operations(), operationsFold);
  if (state.hold !== null) return state.hold;
  const context = contextOf(filling, 'svc restore', 'hold', manifest);
  const reason = `restored from the backup of ${manifest.made_at}`;
  const { state: held } = await holdCommand(store, reason, context);
  if (held.hold === null) throw new Error('the hold was not written');
  return held.hold;
}

function contextOf(
  { clock, reason }: Filling,
  source: string,
  step: string,
  manifest: Manifest,
): CommandContext {
  // Of the archive: who goes on with an import that was broken off says the same again.
  const commandId = nameBasedId(source, step, manifest.id);
  const now = clock.now();
  const correlationId = correlationOf(manifest);
  return { commandId, actor: 'service', source, correlationId, reason, now };
}

/** What is added to a log in the course of bringing an archive into it is known by this. */
const correlationOf = ({ id }: Manifest): string => nameBasedId('archive', id);

/** Views as of a moment end at a position of the log that they were ordered in: in another they would be of another moment. */
async function dropReplays(store: EventStore, filling: Filling, manifest: Manifest): Promise<void> {
  const { state } = await load(store, streams.replays(), replaysFold);
  for (const name of state.known.keys()) {
    await dropReplay(store, name, contextOf(filling, 'svc import', `drop ${name}`, manifest));
  }
}

async function onStoreIn<T>(
  { dataDirectory: directory, eventStoreUrl: url }: LogPlace,
  work: (store: EventStore) => Promise<T>,
): Promise<T> {
  const shared = { codec: createEventCodec(), telemetry: silent };
  const store = await (url === undefined
    ? import('../../stores/sqlite/event-log/event-store.ts').then(({ openSqliteEventStore }) =>
        openSqliteEventStore({ ...shared, directory }),
      )
    : import('../../stores/eventstoredb/event-store.ts').then(({ openEventStoreDb }) =>
        openEventStoreDb({ ...shared, url }),
      ));
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
