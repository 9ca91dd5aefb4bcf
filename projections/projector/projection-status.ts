import type { Position } from '../../domain/event-store.ts';
import type { Comparison, RebuildOrder } from '../../domain/operators/projection-orders.ts';
import type { RebuildSwitch } from '../../domain/vocabulary.ts';

/**
 * The reported state of a view.
 *
 * `opening`: not opened yet. `filling`: its first generation is being built; nothing can be read yet. `following`: it
 * is fed from the log. `waiting`: a store is unavailable, or another writer moved the view; it retries. `halted`: its
 * first build met an event that cannot be folded; it waits for a rebuild, while an older shape is read. `newer_schema`:
 * the log has events of a newer release; the view makes no progress until this release is replaced. `stopped`: the
 * projector does not run.
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
 * `waiting`: ordered, not started yet. `paused`: stopped by an order. `catching_up`: filled and indexed, on its way to
 * the live generation's position. `ready`: level with the live generation, and compared with it.
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
  /** The live generation; each rebuild adds one. 0 if there is none. */
  readonly version: number;
  readonly schema: number;
  readonly state: ProjectionState;
  readonly position: Position;
  /** Age of the last event taken while more events follow; 0 once the view has caught up. */
  readonly lag_seconds: number;
  readonly caught_up: boolean;
  /** Events folded into this generation since the projector opened it. */
  readonly handled: number;
  readonly parked: number;
  /** The running rebuild, or the one that failed last. */
  readonly rebuild: RebuildStatus | null;
  /** The previous generation, to which reads can be rolled back; null for none. */
  readonly previous: { readonly version: number; readonly until: string } | null;
  readonly detail: string | null;
}

export interface RebuildStatus extends FillingStatus {
  /** Events per second at most; null: unlimited. */
  readonly rate: number | null;
  readonly switch: RebuildSwitch;
  /** How the rebuild differs from the live generation; null until the rebuild is ready. */
  readonly comparison: Comparison | null;
}

export interface FillingStatus {
  readonly version: number;
  readonly state: RebuildState;
  /** Events folded into it since the projector opened it. */
  readonly handled: number;
  /** How often a skipped event was left out of a document because it cannot be folded here either. */
  readonly left_out: number;
  /** A fraction from 0 to 1, by the position in the log. */
  readonly progress: number;
  readonly events_per_second: number;
  /** null while unknown. */
  readonly seconds_left: number | null;
  readonly detail: string | null;
}

/**
 * A rebuild in the form that clients see.
 * @param filling the progress, if a projector works on the rebuild; or the progress of a first build, which nobody
 *   ordered
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
    // A filled generation is still fed, but its state does not advance.
    const isHeld = paused && (filling.state === 'catching_up' || filling.state === 'ready');
    return { ...filling, ...asked, ...(isHeld && { state: 'paused' }) };
  }
  const state = error !== null ? 'failed' : ready ? 'ready' : paused ? 'paused' : 'waiting';
  const none = { handled: 0, left_out: 0, progress: 0, events_per_second: 0, seconds_left: null };
  return { version, state, ...none, progress: ready ? 1 : 0, ...asked, detail: error };
}
