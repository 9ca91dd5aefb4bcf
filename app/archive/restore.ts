import { constants, existsSync, readdirSync } from 'node:fs';
import { chmod, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { beginImport, completeImport } from '../../domain/operators/import.ts';
import { holdCommand, operationsFold, type HoldOrder } from '../../domain/operators/operations.ts';
import { dropReplay, replaysFold } from '../../domain/operators/replays.ts';
import { streams } from '../../domain/streams.ts';
import { silent } from '../../observability/telemetry.ts';
import { fileBlockingFolder, makeFolder } from '../../stores/folder.ts';
import { checkLog } from '../../stores/sqlite/event-log/backup.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { moveIfAbsent } from '../move-if-absent.ts';
import { ArchiveError } from './archive-error.ts';
import {
  isUnfinished,
  makeUnfinished,
  removeUnfinished,
  STAGING,
  syncFile,
  syncFolder,
} from './durable-folder.ts';
import { importEvents, type Imported } from './import-log.ts';
import { isKeyOf } from './key-files.ts';
import { removeCompanions } from './make-archive.ts';
import { checkFile, readManifest, type EventsManifest, type Manifest } from './manifest.ts';
import { withTransfer, type LogPlace } from './open-transfer.ts';
import type { ArchiveProgress } from './progress.ts';

/** The archive to restore or import, and the target. */
export interface RestoreOrder {
  readonly place: LogPlace;
  /** The folder of the archive. */
  readonly archive: string;
  readonly clock: Clock;
  readonly progress: ArchiveProgress;
  /** The caller's reason. */
  readonly reason: string | undefined;
}

/** The result of a restore. */
export interface Restored<T> {
  readonly manifest: Manifest;
  /** The hold that the service starts with. */
  readonly hold: HoldOrder;
  /** The result of `inspect`. */
  readonly found: T;
}

/**
 * Restores a backup or an export into an empty data directory or server. The log is on hold before a service can start
 * on it, so that an operator determines what happens to the backlog.
 *
 * Once the log is in place, this process must not open it. SQLite shares the index of the WAL (`-shm`) between all
 * connections of a process to one file, and closed ones stay until their statements are collected. If a service has
 * started in the meantime, this would read an older state and could truncate the service's WAL.
 *
 * @param inspect reads the restored log before it is in place
 * @throws ArchiveError `refused` if the target is not empty, `damaged` for an incomplete backup
 */
export async function restore<T>(
  order: RestoreOrder,
  inspect: (place: LogPlace) => Promise<T>,
): Promise<Restored<T>> {
  const { archive, place, progress } = order;
  progress.stage('verifying the backup');
  const manifest = readManifest(archive);
  await checkFile(archive, manifest.log);
  for (const key of manifest.keys) await checkFile(archive, key);
  if (place.eventStoreUrl !== undefined) {
    const hold = await restoreToServer(order, manifest);
    return { manifest, hold, found: await inspect(place) };
  }
  rejectUsedFolder(place.dataDirectory, archive, manifest);
  makeFolder(place.dataDirectory);
  const staging = makeUnfinished(place.dataDirectory, STAGING);
  try {
    await fillFolder(order, manifest, staging);
    checkLog(staging);
    progress.stage('putting on hold');
    const staged = { ...place, dataDirectory: staging };
    const hold = await withLog(staged, async (store) => {
      // A copied file keeps its positions, to which replays refer.
      if (manifest.kind === 'events') await dropReplays(store, order, manifest);
      return holdRestored(store, order, manifest);
    });
    const found = await inspect(staged);
    removeCompanions(logFile(staging));
    progress.stage('closing');
    await putInPlace(staging, place.dataDirectory, archive, manifest);
    return { manifest, hold, found };
  } finally {
    removeUnfinished(staging);
  }
}

/**
 * Imports the events of an export into an empty log, or continues an interrupted import.
 * @throws ArchiveError as {@link restore}
 */
export async function importArchive(
  order: RestoreOrder & {
    /** Whether all events keep the archive's order, even if that is slower. */
    readonly inOrder: boolean;
  },
): Promise<Imported & { readonly manifest: EventsManifest }> {
  const { archive, place, progress } = order;
  progress.stage('verifying the export');
  const manifest = readManifest(archive);
  if (manifest.kind !== 'events') {
    throw new ArchiveError('refused', `${archive} is a backup; use svc restore`);
  }
  await checkFile(archive, manifest.log);
  await checkFile(archive, manifest.truncations);
  const imported = await importInto(order, manifest, order.inOrder);
  await withLog(place, async (store) => {
    await dropReplays(store, order, manifest);
    const context = contextOf(order, 'svc import', 'complete', manifest);
    await completeImport(store, manifest.id, imported.events, context);
  });
  return { manifest, ...imported };
}

async function restoreToServer(order: RestoreOrder, manifest: Manifest): Promise<HoldOrder> {
  if (manifest.kind !== 'events') {
    const advice = 'restore it into a folder, then use svc export and svc import';
    throw new ArchiveError('refused', `this backup is a copy of an embedded log: ${advice}`);
  }
  const { events } = await importInto(order, manifest, false);
  order.progress.stage('putting on hold');
  // No service starts until the import is completed, so the hold comes first.
  return withLog(order.place, async (store) => {
    await dropReplays(store, order, manifest);
    const hold = await holdRestored(store, order, manifest);
    const context = contextOf(order, 'svc restore', 'complete', manifest);
    await completeImport(store, manifest.id, events, context);
    return hold;
  });
}

function importInto(
  order: RestoreOrder,
  manifest: EventsManifest,
  inOrder: boolean,
): Promise<Imported> {
  const { place, archive, progress } = order;
  const context = contextOf(order, 'svc import', 'begin', manifest);
  const { correlationId } = context;
  const onAccepted = (): Promise<void> =>
    withLog(place, async (store) => {
      await beginImport(store, manifest.id, manifest.events, context);
    });
  return withTransfer(place, true, (log) =>
    importEvents(log, archive, manifest, progress, { correlationId, inOrder, onAccepted }),
  );
}

async function fillFolder(order: RestoreOrder, manifest: Manifest, staging: string): Promise<void> {
  const { archive, progress } = order;
  const copy = async (from: string, to: string): Promise<void> => {
    await copyFile(join(archive, from), to, constants.COPYFILE_FICLONE);
    await chmod(to, 0o600);
    await syncFile(to);
  };
  for (const { file } of manifest.keys) await copy(file, join(staging, file));
  if (manifest.kind === 'copy') {
    progress.stage('copying');
    await copy(manifest.log.file, logFile(staging));
    progress.stage('checking');
    await checkFile(staging, manifest.log);
    return;
  }
  await checkFile(archive, manifest.truncations);
  const place = { dataDirectory: staging, eventStoreUrl: undefined };
  const correlationId = correlationOf(manifest);
  const options = { correlationId, inOrder: true, onAccepted: async () => {} };
  await withTransfer(place, true, (log) => importEvents(log, archive, manifest, progress, options));
}

/**
 * Moves the files into place, the log last, because it makes the folder a store. Overwrites nothing: of concurrent
 * restores one succeeds.
 * @throws ArchiveError `refused` if another one did
 */
async function putInPlace(
  staging: string,
  directory: string,
  archive: string,
  { keys }: Manifest,
): Promise<void> {
  const move = (from: string, to: string): void => {
    try {
      moveIfAbsent(from, to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      // Left by an earlier attempt.
      if (isKeyOf(keys, archive, to)) return;
      const message = `another process filled ${directory} meanwhile`;
      throw new ArchiveError('refused', message, error);
    }
  };
  for (const { file } of keys) move(join(staging, file), join(directory, file));
  await syncFolder(directory);
  await syncFile(logFile(staging));
  move(logFile(staging), logFile(directory));
  await syncFolder(directory);
}

/** @throws ArchiveError `refused` if a file is in the place of the folder or of one above it */
export function rejectBlockedFolder(directory: string): void {
  const file = fileBlockingFolder(directory);
  if (file === null) return;
  const why = `${file} is not a folder; SVC_DATA_DIR or --data-dir must name one`;
  throw new ArchiveError('refused', `${directory} can't be made: ${why}`);
}

/** @throws ArchiveError `refused` if the folder holds anything but the remains of an earlier attempt */
export function rejectUsedFolder(directory: string, archive: string, { keys }: Manifest): void {
  rejectBlockedFolder(directory);
  if (!existsSync(directory)) return;
  const others = readdirSync(directory).filter(
    (name) =>
      !isUnfinished(name, STAGING) &&
      name !== 'lost+found' &&
      !isKeyOf(keys, archive, join(directory, name)),
  );
  if (others.length === 0) return;
  const names = others.slice(0, 5).join(', ');
  const message = `${directory} is not empty (${names}): restore into an empty folder`;
  throw new ArchiveError('refused', message);
}

/** Puts the restored service on hold, unless it was on hold when it was backed up. */
async function holdRestored(
  store: EventStore,
  order: RestoreOrder,
  manifest: Manifest,
): Promise<HoldOrder> {
  const { state } = await load(store, streams.operations(), operationsFold);
  if (state.hold !== null) return state.hold;
  const context = contextOf(order, 'svc restore', 'hold', manifest);
  const reason = `restored from the backup of ${manifest.made_at}`;
  const { state: held } = await holdCommand(store, reason, context);
  if (held.hold === null) throw new Error('the hold was not written');
  return held.hold;
}

/** The context of a step. Its ids derive from the archive, so that a continued import repeats its commands. */
function contextOf(
  { clock, reason }: RestoreOrder,
  source: string,
  step: string,
  manifest: Manifest,
): CommandContext {
  const commandId = nameBasedId(source, step, manifest.id);
  const correlationId = correlationOf(manifest);
  return { commandId, actor: 'service', source, correlationId, reason, now: clock.now() };
}

/** Marks the events that an import adds. */
const correlationOf = ({ id }: Manifest): string => nameBasedId('archive', id);

/** Drops replays: they refer to positions of the old log. */
async function dropReplays(
  store: EventStore,
  order: RestoreOrder,
  manifest: Manifest,
): Promise<void> {
  const { state } = await load(store, streams.replays(), replaysFold);
  for (const name of state.known.keys()) {
    await dropReplay(store, name, contextOf(order, 'svc import', `drop ${name}`, manifest));
  }
}

async function withLog<T>(
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
