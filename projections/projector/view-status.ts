import { fromIso, toIso, type Clock } from '../../domain/clock.ts';
import { BEGINNING } from '../../domain/event-store.ts';
import type { ProjectionOrders } from '../../domain/operators/projection-orders.ts';
import type { Build } from '../generations/build.ts';
import type { Projection } from '../read-model.ts';
import type { Follower } from './follower.ts';
import { rebuildStatus, type ProjectionState, type ProjectionStatus } from './projection-status.ts';
import type { ViewState } from './view-states.ts';

export interface ViewParts {
  readonly projection: Projection;
  readonly clock: Clock;
  readonly state: ViewState;
  readonly orders: ProjectionOrders;
  readonly live: Follower | null;
  readonly older: Follower | null;
  readonly build: Build | null;
  /** The version of the previous generation, while it is fed. */
  readonly previous: number | null;
  /** The last error in managing the view; null if an action has succeeded since. */
  readonly error: string | null;
}

/** The reported status of a view. */
export function viewStatus(parts: ViewParts): ProjectionStatus {
  const { projection, clock, orders, live, older, build, error } = parts;
  const read = live ?? older;
  const writer = read?.writer;
  const position = writer?.passed ?? BEGINNING;
  const caughtUp = read?.isLevel ?? false;
  const lastAt = writer?.lastOccurredAt ?? null;
  const lag = caughtUp || lastAt === null ? 0 : (clock.now() - fromIso(lastAt)) / 1000;
  const state = shownState(parts);
  const { previous, rebuild } = orders;
  const halted = state === 'halted' ? (build?.error ?? null) : null;
  return {
    name: projection.name,
    version: live?.writer.generation ?? 0,
    schema: projection.schema,
    state,
    position,
    lag_seconds: Math.max(0, lag),
    caught_up: caughtUp,
    handled: writer?.handled ?? 0,
    parked: writer?.parked ?? 0,
    rebuild: rebuildStatus(rebuild, build?.status(parts.state) ?? null),
    previous:
      parts.previous === null || previous === null
        ? null
        : { version: previous.version, until: toIso(previous.until) },
    detail: halted ?? error ?? live?.detail ?? null,
  };
}

function shownState({ state, live, error }: ViewParts): ProjectionState {
  if (error !== null) return 'waiting';
  if (state === 'opening' || state === 'stopped') return state;
  if (live !== null) return live.state;
  return state === 'failed' ? 'halted' : 'filling';
}
