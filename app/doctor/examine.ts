import type { Clock } from '../../domain/clock.ts';
import { silent } from '../../observability/telemetry.ts';
import { existsSync } from 'node:fs';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { onTransfer } from '../archive/open-transfer.ts';
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

/** Milliseconds of a lease where the settings can't be read. */
const LEASE = 30_000;

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
  const machine = [
    ...findings,
    ...checkFolder(settings),
    checkKey(settings, configuration),
    checkDisk(settings),
  ];
  // Opening the stores would make them.
  const there = settings.eventStoreUrl !== undefined || existsSync(logFile(settings.dataDirectory));
  if (!there) return machine;
  try {
    const stores = await openStores(settings, silent);
    try {
      const lease = configuration === null ? LEASE : configuration.leaseSeconds * 1000;
      return [...machine, ...(await examineStores(stores, { ...options, lease }))];
    } finally {
      await stores.close();
    }
  } catch (error) {
    options.progress.signal.throwIfAborted();
    return [...machine, fault('stores', wordsOf(error), 'see the message; nothing was changed')];
  }
}

async function examineStores(
  stores: Stores,
  options: Parameters<typeof examine>[0] & { readonly lease: number },
): Promise<readonly Finding[]> {
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
    onTransfer(settings, false, (log) => checkLog(log, stores, now(), lease, progress)),
  );
  return found;
}
