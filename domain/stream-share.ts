/** One of several shares of a log's streams. Each stream is in exactly one share, with all its events. */
export interface StreamShare {
  /** From 0. */
  readonly index: number;
  readonly of: number;
}
