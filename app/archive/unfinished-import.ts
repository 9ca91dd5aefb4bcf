import { ArchiveFault } from './archive-fault.ts';

/**
 * Keeps a log that an import was broken off on from being exported or backed up. The archive would not say that
 * anything is missing (what a log says of imports into itself is not true of another), and a service that is started on
 * what is made of it fires what the missing events say has fired.
 *
 * @param last the type of the last event that the log has of imports into itself; null where it has none
 * @throws ArchiveFault `refused`
 */
export function rejectUnfinishedImport(last: string | null): void {
  if (last !== 'ImportBegun') return;
  const what = 'an import into this log was begun and is not completed';
  throw new ArchiveFault('refused', `${what}: run the same svc import (or svc restore) again`);
}
