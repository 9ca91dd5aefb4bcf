import { parseRemembered } from '../remembered-json.ts';

/** The name under which the progress of the current replay is remembered between processes. */
export const REPLAY_REPORT = 'replay-progress';

/** The progress of the current replay. It may be lost, and is up to a second old. */
export interface ReplayProgress {
  /** ISO 8601. */
  readonly at: string;
  readonly name: string;
  readonly version: number;
  /** The view being built. */
  readonly view: string;
  /** Events folded into that view since the projector began. */
  readonly handled: number;
  /** The progress over all views of the replay, 0..1. */
  readonly progress: number;
  readonly events_per_second: number;
}

/** Parses a remembered report; null for none, and for an invalid string. */
export const parseReplayProgress = (text: string | null): ReplayProgress | null =>
  parseRemembered<ReplayProgress>(
    text,
    ({ at, name, version, progress }) =>
      typeof at === 'string' &&
      typeof name === 'string' &&
      typeof version === 'number' &&
      typeof progress === 'number',
  );
