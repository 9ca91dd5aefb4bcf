/** How far an export, import, backup or restore is. Given by the command line, which shows it. */
export interface ArchiveProgress {
  /** A new stage begins; its name stands in what is shown. */
  stage(name: string): void;
  /**
   * The stage goes on.
   * @param share how much of it is done, 0 to 1
   * @param events how many it has handled; undefined where it counts none
   */
  move(share: number, events?: number): void;
  /** Whether it is to end before its time. */
  readonly signal: AbortSignal;
}
