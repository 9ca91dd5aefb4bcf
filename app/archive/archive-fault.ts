/** Why an export, an import, a backup or a restore can't be done; the message says what to do about it. */
export class ArchiveFault extends Error {
  /** `absent`: there is no such log; `refused`: by what is there (a target that is not empty); `damaged`: the archive itself. */
  readonly kind: 'absent' | 'refused' | 'damaged' | 'failed';

  constructor(kind: ArchiveFault['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ArchiveFault';
    this.kind = kind;
  }
}
