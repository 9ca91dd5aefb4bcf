/** Receives the progress of an export, import, backup or restore. */
export interface ArchiveProgress {
  /** A new stage begins. */
  stage(name: string): void;
  /**
   * The stage advances.
   * @param share done, from 0 to 1
   * @param events handled; undefined if the stage counts none
   */
  move(share: number, events?: number): void;
  /** Aborted to stop early. */
  readonly signal: AbortSignal;
}
