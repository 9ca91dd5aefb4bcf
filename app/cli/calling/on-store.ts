import { existsSync } from 'node:fs';
import { EventStoreError } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import {
  eventStoreSchemes,
  storeAddress,
  type Environment,
} from '../../configuration/setting-readers.ts';
import type { Stores, StoreSettings } from '../../stores.ts';
import { CommandFault, exitCodes, usageFault } from './faults.ts';
import { dataDirectoryOf } from './sign-in.ts';

/**
 * Where the stores are, as the service's own settings say.
 * @param dataDirectory in place of `SVC_DATA_DIR`
 * @throws ConfigurationError for an address that is none; CommandFault for an empty `dataDirectory`: what a script has
 *   forgotten to set must not become the folder that it happens to be in
 */
export function storeSettings(env: Environment, dataDirectory?: string): StoreSettings {
  if (dataDirectory?.trim() === '') throw usageFault('--data-dir names no folder');
  return {
    dataDirectory: dataDirectory ?? dataDirectoryOf(env),
    eventStoreUrl: storeAddress(env, 'SVC_EVENT_STORE_URL', eventStoreSchemes),
    readModelUrl: storeAddress(env, 'SVC_READ_MODEL_URL', ['mongodb://', 'mongodb+srv://']),
  };
}

/**
 * Works on the stores themselves, past the interface, beside whatever service runs on them.
 * @throws CommandFault where there is no store: a mistyped folder must not become a new, empty one; and where one does
 *   not answer
 */
export async function onStore<T>(
  settings: StoreSettings,
  work: (stores: Stores) => Promise<T>,
): Promise<T> {
  const { dataDirectory, eventStoreUrl } = settings;
  // Only here: most commands call the service, and need none of the stores.
  const { openStores } = await import('../../stores.ts');
  const { logFile } = await import('../../../stores/sqlite/event-log/schema.ts');
  const { ReadModelError } = await import('../../../projections/read-model.ts');
  if (eventStoreUrl === undefined && !existsSync(logFile(dataDirectory))) {
    throw usageFault(`there is no store in ${dataDirectory}: set SVC_DATA_DIR or --data-dir`);
  }
  const stores = await openStores(settings, silent);
  try {
    return await work(stores);
  } catch (error) {
    const isOfStore = error instanceof EventStoreError || error instanceof ReadModelError;
    if (!isOfStore || error.code !== 'UNAVAILABLE') throw error;
    throw new CommandFault(exitCodes.unavailable, error.message, error);
  } finally {
    await stores.close();
  }
}
