import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { silent } from '../../observability/telemetry.ts';
import { isAtRest } from '../../stores/sqlite/database-file.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { withTransfer } from '../archive/open-transfer.ts';
import type { ArchiveProgress } from '../archive/progress.ts';
import type { Environment } from '../configuration/setting-readers.ts';
import { openStores, type Stores, type StoreSettings } from '../stores.ts';
import { fault, wordsOf, type Finding } from './finding.ts';
import { checkLog, checkTasks } from './invariant-checks.ts';
import { checkDisk, checkFolder, checkKey, checkSettings } from './machine-checks.ts';
import {
  checkClocks,
  checkOrders,
  checkProcesses,
  checkStores,
  checkViews,
} from './store-checks.ts';
import { fileInPlaceOf, statIfPresent } from '../../stores/folder.ts';

/** Milliseconds of a lease where the settings can't be read. */
const LEASE = 30_000;

type Looking = Parameters<typeof examine>[0] & { readonly lease: number };

/**
 * Looks at all that a service needs, and at what its log says, and changes nothing. What can't be looked at is a fault
 * of its own, and keeps nothing else from being looked at.
 *
 * @param options.whole whether the whole log is read for what must always hold
 * @param options.url where a service may answer
 */
export async function examine(options: {
  readonly env: Environment;
  readonly settings: StoreSettings;
  readonly clock: Clock;
  readonly url: string;
  readonly whole: boolean;
  readonly progress: ArchiveProgress;
}): Promise<readonly Finding[]> {
  const { env, settings } = options;
  const { configuration, findings } = checkSettings(env);
  const isFolder = fileInPlaceOf(settings.dataDirectory) === null;
  const machine = [
    ...findings,
    ...checkFolder(settings),
    ...(isFolder ? [checkKey(settings, configuration), checkDisk(settings)] : []),
  ];
  // Opening the stores would make them.
  const there = settings.eventStoreUrl !== undefined || existsSync(logFile(settings.dataDirectory));
  if (!there) return machine;
  const lease = configuration === null ? LEASE : configuration.leaseSeconds * 1000;
  const look = (): Promise<readonly Finding[]> => lookAtStores({ ...options, lease });
  const resting = isFolder ? filesAtRest(settings.dataDirectory) : [];
  const found = await look();
  // What was read of them as they lay there may be half of before and half of after.
  const wasTouched = resting.some((each) => !isAsItWas(each));
  return [...machine, ...(wasTouched ? await look() : found)];
}

/** A file of a store that nobody had open. */
interface RestingFile {
  readonly path: string;
  readonly changedAt: number;
}

function filesAtRest(directory: string): readonly RestingFile[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => /\.(sqlite|db)$/.test(name) && isAtRest(join(directory, name)))
    .map((name) => join(directory, name))
    .map((path) => ({ path, changedAt: changedAt(path) }));
}

function isAsItWas({ path, changedAt: before }: RestingFile): boolean {
  return isAtRest(path) && changedAt(path) === before;
}

function changedAt(path: string): number {
  return statIfPresent(path)?.mtimeMs ?? 0;
}

async function lookAtStores(options: Looking): Promise<readonly Finding[]> {
  try {
    const stores = await openStores(options.settings, silent, true);
    try {
      return await examineStores(stores, options);
    } finally {
      await stores.close();
    }
  } catch (error) {
    options.progress.signal.throwIfAborted();
    return [fault('stores', wordsOf(error), 'see the message; nothing was changed')];
  }
}

async function examineStores(stores: Stores, options: Looking): Promise<readonly Finding[]> {
  const { settings, clock, url, whole, lease, progress } = options;
  const { answer, findings } = await checkStores(stores, settings);
  if (!answer) return findings;
  const found = [...findings];
  const look = async (check: string, ask: () => Promise<readonly Finding[]>): Promise<void> => {
    try {
      found.push(...(await ask()));
    } catch (error) {
      progress.signal.throwIfAborted();
      found.push(fault(check, `can't be looked at: ${wordsOf(error)}`, 'see the message'));
    }
  };
  const now = (): number => clock.now();
  await look('orders', () => checkOrders(stores));
  const held = found.some(({ check, verdict }) => check === 'orders' && verdict !== 'ok');
  await look('processes', () => checkProcesses(stores, now()));
  await look('lag', () => checkViews(stores, now()));
  await look('clocks', () => checkClocks(stores, now, url));
  await look('tasks', async () => [await checkTasks(stores, now(), held, progress.signal)]);
  if (!whole) return found;
  progress.stage('reading the log');
  await look('events', () =>
    withTransfer({ ...settings, immutable: true }, false, (log) =>
      checkLog(log, stores, now(), lease, progress),
    ),
  );
  return found;
}
