import type { Position } from '../../domain/event-store.ts';
import type { Comparison, RebuildOrder } from '../../domain/operators/projection-orders.ts';
import type { RebuildSwitch } from '../../domain/vocabulary.ts';

/**
 * Where a view is in its life.
 *
 * `opening`: not yet open. `filling`: its first generation is being made; there is nothing to read yet.
 * `following`: it takes what the log brings. `waiting`: a store does not answer, or another writer came
 * between; it tries again by itself. `halted`: its first filling met an event that can't be folded, and
 * waits for a rebuild, as an older shape of it is read meanwhile; without one the event's key is held back. `newer_schema`: the log holds events of a newer release; nothing is taken until
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

/**
 * `waiting`: ordered, and not begun by a projector. `paused`: rests where it is. `catching_up`: filled and indexed, on
 * its way to the place of the live generation. `ready`: level with it, and compared with it.
 */
export const rebuildStates = [
  'waiting',
  'filling',
  'paused',
  'catching_up',
  'ready',
  'failed',
] as const;
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
  /** The generation before, which reads can go back to; null for none. */
  readonly previous: { readonly version: number; readonly until: string } | null;
  /** What is wrong, in words; null while nothing is. */
  readonly detail: string | null;
}

/** A rebuild: how far it is, and what was ordered of it. */
export interface RebuildStatus extends FillingStatus {
  /** Events a second at most; null: as fast as it goes. */
  readonly rate: number | null;
  readonly switch: RebuildSwitch;
  /** How it differs from the generation that is read; null until it is ready. */
  readonly comparison: Comparison | null;
}

/** How far the making of a generation is. */
export interface FillingStatus {
  /** The generation in the making. */
  readonly version: number;
  readonly state: RebuildState;
  /** Events folded into it since the projector opened it. */
  readonly handled: number;
  /** How often an event was left out of a document: it was skipped before, and can't be folded here either. */
  readonly left_out: number;
  /** 0..1, by the time that the log spans. */
  readonly progress: number;
  readonly events_per_second: number;
  /** null until it can be told. */
  readonly seconds_left: number | null;
  readonly detail: string | null;
}

/**
 * A rebuild as it is shown.
 * @param filling how far it is, where a projector is at it; or that of another, which nobody has ordered
 */
export function rebuildStatus(
  order: RebuildOrder | null,
  filling: FillingStatus | null,
): RebuildStatus | null {
  if (order === null) {
    return filling === null ? null : { ...filling, rate: null, switch: 'auto', comparison: null };
  }
  const { version, rate, switch: how, comparison, error, paused, ready } = order;
  const asked = { rate, switch: how, comparison };
  if (filling !== null && filling.version === version) {
    // One that is filled is fed on, and goes no further than that.
    const isHeld = paused && (filling.state === 'catching_up' || filling.state === 'ready');
    return { ...filling, ...asked, ...(isHeld && { state: 'paused' }) };
  }
  const state = error !== null ? 'failed' : ready ? 'ready' : paused ? 'paused' : 'waiting';
  const none = { handled: 0, left_out: 0, progress: 0, events_per_second: 0, seconds_left: null };
  return { version, state, ...none, progress: ready ? 1 : 0, ...asked, detail: error };
}
