/** One of several shares of a log's streams: each stream is in exactly one, with all its events. */
export interface StreamShare {
  /** From 0. */
  readonly index: number;
  readonly of: number;
}
