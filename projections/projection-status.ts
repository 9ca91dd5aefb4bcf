import type { Position } from '../domain/event-store.ts';

/**
 * Where a view is in its life.
 *
 * `opening`: not yet open. `filling`: its first generation is being made; there is nothing to read yet.
 * `following`: it takes what the log brings. `waiting`: a store does not answer, or another writer came
 * between; it tries again by itself. `halted`: its first filling met an event that can't be folded, and
 * waits for a rebuild. `newer_schema`: the log holds events of a newer release; nothing is taken until
 * this release is replaced. `stopped`: the projector does not run.
 */
export const projectionStates = [
  'opening',
  'filling',
  'following',
  'waiting',
  'halted',
  'newer_schema',
  'stopped',
] as const;
export type ProjectionState = (typeof projectionStates)[number];

/** `catching_up`: filled and indexed, on its way to the place of the live generation. */
export const rebuildStates = ['filling', 'catching_up', 'failed'] as const;
export type RebuildState = (typeof rebuildStates)[number];

/** A row of `GET /projections`. */
export interface ProjectionStatus {
  readonly name: string;
  /** The generation that is read; each rebuild adds one. 0 while there is none. */
  readonly version: number;
  /** The shape in the code. */
  readonly schema: number;
  readonly state: ProjectionState;
  readonly position: Position;
  /** Age of the last event taken, while there are more; 0 when caught up. */
  readonly lag_seconds: number;
  readonly caught_up: boolean;
  /** Events folded into this generation since the projector opened it. */
  readonly handled: number;
  /** Keys that are held back. */
  readonly parked: number;
  /** Under way, or failed last. */
  readonly rebuild: RebuildStatus | null;
  /** What is wrong, in words; null while nothing is. */
  readonly detail: string | null;
}

export interface RebuildStatus {
  /** The generation in the making. */
  readonly version: number;
  readonly state: RebuildState;
  readonly handled: number;
  /** 0..1, by the time that the log spans. */
  readonly progress: number;
  readonly events_per_second: number;
  /** null until it can be told. */
  readonly seconds_left: number | null;
  readonly detail: string | null;
}
