import { ReadModelError } from '../../../projections/read-model.ts';
import { describeFault, faultOf, IncompatibleDatabaseError } from '../database.ts';

/** The port's error for one of the driver or the file system. Any other error is a bug and is returned as it is. */
export function unavailable(what: string, file: string, error: unknown): unknown {
  if (error instanceof IncompatibleDatabaseError) {
    return new ReadModelError('UNAVAILABLE', error.message, error);
  }
  const ofFileSystem = error instanceof Error && 'syscall' in error;
  if (faultOf(error) === undefined && !ofFileSystem) return error;
  return new ReadModelError('UNAVAILABLE', describeFault(what, file, error), error);
}
