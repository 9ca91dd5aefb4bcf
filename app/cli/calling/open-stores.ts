import { existsSync } from 'node:fs';
import { EventStoreError } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import {
  eventStoreSchemes,
  storeAddress,
  type Environment,
} from '../../configuration/setting-readers.ts';
import type { Stores, StoreSettings } from '../../stores.ts';
import { CommandError, exitCodes, usageError } from './command-errors.ts';
import { dataDirectoryOf } from './credentials.ts';

/**
 * The stores' addresses, from the service's settings.
 * @param dataDirectory overrides `SVC_DATA_DIR`
 * @throws ConfigurationError for an invalid address; CommandError for an empty `dataDirectory`, so that an unset shell
 *   variable does not select the current folder
 */
export function storeSettings(env: Environment, dataDirectory?: string): StoreSettings {
  if (dataDirectory?.trim() === '') throw usageError('--data-dir is empty');
  return {
    dataDirectory: dataDirectory ?? dataDirectoryOf(env),
    eventStoreUrl: storeAddress(env, 'SVC_EVENT_STORE_URL', eventStoreSchemes),
    readModelUrl: storeAddress(env, 'SVC_READ_MODEL_URL', ['mongodb://', 'mongodb+srv://']),
  };
}

/**
 * Opens the stores directly, beside any running service, and closes them.
 * @throws CommandError if there is no store (a mistyped folder must not become a new store), or if one is unavailable
 */
export async function withStores<T>(
  settings: StoreSettings,
  work: (stores: Stores) => Promise<T>,
): Promise<T> {
  const { dataDirectory, eventStoreUrl } = settings;
  // Imported here because most commands call the service and need no store.
  const { openStores } = await import('../../stores.ts');
  const { logFile } = await import('../../../stores/sqlite/event-log/schema.ts');
  const { ReadModelError } = await import('../../../projections/read-model.ts');
  if (eventStoreUrl === undefined && !existsSync(logFile(dataDirectory))) {
    throw usageError(`there is no store in ${dataDirectory}; set SVC_DATA_DIR or --data-dir`);
  }
  const stores = await openStores(settings, silent);
  try {
    return await work(stores);
  } catch (error) {
    const isOfStore = error instanceof EventStoreError || error instanceof ReadModelError;
    if (!isOfStore || error.code !== 'UNAVAILABLE') throw error;
    throw new CommandError(exitCodes.unavailable, error.message, error);
  } finally {
    await stores.close();
  }
}
