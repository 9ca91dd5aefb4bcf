import { EventStoreError } from '../../../domain/event-store.ts';
import { IncompatibleDatabaseError, describeFault, faultOf } from '../database.ts';
import { LOG } from './schema.ts';

/** The port's error for one of the driver (`UNAVAILABLE`, `NEWER_SCHEMA`). Any other error is returned as it is. */
function logError(file: string, error: unknown): unknown {
  if (error instanceof IncompatibleDatabaseError) {
    return new EventStoreError('NEWER_SCHEMA', error.message, { cause: error });
  }
  if (faultOf(error) === undefined) return error;
  return new EventStoreError('UNAVAILABLE', describeFault(LOG, file, error), { cause: error });
}

/** Runs an action on the log's file. @throws EventStoreError `UNAVAILABLE`, `NEWER_SCHEMA` */
export function onLog<T>(file: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw logError(file, error);
  }
}
