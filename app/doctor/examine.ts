import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { silent } from '../../observability/telemetry.ts';
import { fileBlockingFolder, statIfPresent } from '../../stores/folder.ts';
import { isDatabaseClosed } from '../../stores/sqlite/database-file.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { withTransfer } from '../archive/open-transfer.ts';
import type { ArchiveProgress } from '../archive/progress.ts';
import type { Environment } from '../configuration/setting-readers.ts';
import { openStores, type Stores, type StoreSettings } from '../stores.ts';
import { checkArtifacts } from './artifact-checks.ts';
import { failedCheck, wordsOf, type Finding } from './finding.ts';
import { checkLog, checkTasks } from './invariant-checks.ts';
import { checkDisk, checkFolder, checkKey, checkSettings } from './machine-checks.ts';
import { checkSealedSecrets, checkSecrets } from './secret-checks.ts';
import {
  checkClocks,
  checkOrders,
  checkProcesses,
  checkStores,
  checkViews,
} from './store-checks.ts';
import { checkTls } from './tls-checks.ts';

/** Milliseconds of a lease if the settings cannot be read. */
const DEFAULT_LEASE = 30_000;

interface Examination {
  readonly env: Environment;
  readonly settings: StoreSettings;
  readonly clock: Clock;
  /** Where a service may answer. */
  readonly url: string;
  /** Whether to check invariants over the whole log. */
  readonly whole: boolean;
  readonly progress: ArchiveProgress;
}

/**
 * Checks the requirements of a service, and its log. Changes nothing. A check that fails is a finding and does not stop
 * the others.
 */
export async function examine(options: Examination): Promise<readonly Finding[]> {
  const { env, settings } = options;
  const { configuration, findings } = checkSettings(env);
  const isFolder = fileBlockingFolder(settings.dataDirectory) === null;
  const machine = [
    ...findings,
    ...(configuration === null ? [] : checkTls(configuration, options.clock.now())),
    ...checkFolder(settings),
    ...(isFolder ? [checkKey(settings, configuration), checkDisk(settings)] : []),
    ...(isFolder && configuration !== null ? [await checkArtifacts(settings, configuration)] : []),
    ...(isFolder && configuration !== null ? await checkSecrets(configuration, env) : []),
  ];
  // Opening missing stores would create them.
  if (settings.eventStoreUrl === undefined && !existsSync(logFile(settings.dataDirectory))) {
    return machine;
  }
  const lease = configuration === null ? DEFAULT_LEASE : configuration.leaseSeconds * 1000;
  const resting = isFolder ? filesAtRest(settings.dataDirectory) : [];
  const found = await examineStores(options, lease);
  // If a closed file was written during these reads, they may have seen it partly before and partly after the change.
  const isTouched = resting.some(
    ({ path, changedAt }) => !isDatabaseClosed(path) || changeTime(path) !== changedAt,
  );
  return [...machine, ...(isTouched ? await examineStores(options, lease) : found)];
}

/** The store files that no process has open. */
function filesAtRest(
  directory: string,
): readonly { readonly path: string; readonly changedAt: number }[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .map((name) => join(directory, name))
    .filter((path) => /\.(sqlite|db)$/.test(path) && isDatabaseClosed(path))
    .map((path) => ({ path, changedAt: changeTime(path) }));
}

const changeTime = (path: string): number => statIfPresent(path)?.mtimeMs ?? 0;

async function examineStores(options: Examination, lease: number): Promise<readonly Finding[]> {
  try {
    const stores = await openStores(options.settings, silent, true);
    try {
      return await checkOpenStores(stores, options, lease);
    } finally {
      await stores.close();
    }
  } catch (error) {
    options.progress.signal.throwIfAborted();
    return [failedCheck('stores', error, { advice: 'see the message; nothing was changed' })];
  }
}

async function checkOpenStores(
  stores: Stores,
  { env, settings, clock, url, whole, progress }: Examination,
  lease: number,
): Promise<readonly Finding[]> {
  const { answer, findings } = await checkStores(stores, settings);
  if (!answer) return findings;
  const found = [...findings];
  const run = async (name: string, check: () => Promise<readonly Finding[]>): Promise<void> => {
    try {
      found.push(...(await check()));
    } catch (error) {
      progress.signal.throwIfAborted();
      const words = `could not be checked: ${wordsOf(error)}`;
      found.push(failedCheck(name, error, { found: words, advice: 'see the message' }));
    }
  };
  const now = (): number => clock.now();
  await run('orders', () => checkOrders(stores));
  const isHeld = found.some(({ check, verdict }) => check === 'orders' && verdict !== 'ok');
  await run('processes', () => checkProcesses(stores, now()));
  await run('lag', () => checkViews(stores, now()));
  await run('clocks', () => checkClocks(stores, now, url));
  const { configuration } = checkSettings(env);
  if (configuration !== null) {
    await run('keys of secrets', () => checkSealedSecrets(stores, configuration, now()));
  }
  await run('tasks', async () => [await checkTasks(stores, now(), isHeld, progress.signal)]);
  if (!whole) return found;
  progress.stage('reading the log');
  await run('events', () =>
    withTransfer({ ...settings, immutable: true }, false, (log) =>
      checkLog(log, stores, now(), lease, progress),
    ),
  );
  return found;
}
