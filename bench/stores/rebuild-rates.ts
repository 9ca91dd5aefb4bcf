/** Each is requested, starts and succeeds. */
export const EVENTS_OF_A_RUN = 3;

/** Where the views are made, in the folder of the log. */
export const VIEWS = 'views';

/** A log to read, and how many runs are in it. */
export interface RebuildOrder {
  readonly directory: string;
  readonly runs: number;
}

/** Events a second. */
export interface RebuildRates {
  readonly ours: number;
  readonly raw: number;
}
