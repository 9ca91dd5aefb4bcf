/** Why an archive operation failed; the message says what to do about it. */
export class ArchiveError extends Error {
  /**
   * `absent`: there is no such log. `invalid`: a wrong option. `refused`: the target has other content. `damaged`: the
   * archive is damaged.
   */
  readonly kind: 'absent' | 'invalid' | 'refused' | 'damaged' | 'failed';

  constructor(kind: ArchiveError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ArchiveError';
    this.kind = kind;
  }
}

/**
 * Rejects a log with an interrupted import. Its archive would not show that events are missing, and a service on it would
 * repeat fires that the missing events record.
 *
 * @param lastType the type of the last event about imports into the log; null for none
 * @throws ArchiveError `refused`
 */
export function rejectUnfinishedImport(lastType: string | null): void {
  if (lastType !== 'ImportBegun') return;
  const what = 'an import into this log is unfinished';
  throw new ArchiveError('refused', `${what}: run the same svc import (or svc restore) again`);
}
