import type { Static } from '@sinclair/typebox';
import { fromIso, type Instant } from '../clock.ts';
import type { ProjectionEvent } from '../events/catalogue.ts';
import type { ComparisonSchema } from '../events/projection-events.ts';
import type { Fold } from '../handle.ts';
import { placeOfSkipped, type SkippedEvents } from './skipped-events.ts';
import type { ParkedOrder, RebuildSwitch } from '../vocabulary.ts';

/** How long the generation before is fed after a switch, so that going back loses nothing. Milliseconds. */
const KEPT_FOR = 24 * 60 * 60_000;

/** How a generation in the making differs from the one that is read. */
export type Comparison = Static<typeof ComparisonSchema>;

/** What stands of the orders for one shape of a view. */
export interface ProjectionOrders {
  /** The largest version that was ever named. */
  readonly lastVersion: number;
  /** Under way, or failed last. */
  readonly rebuild: RebuildOrder | null;
  /** The version that was switched to last; null where none was. */
  readonly live: number | null;
  /** The one before it. */
  readonly previous: PreviousGeneration | null;
  /** A version of those that are kept, to which reads are to go back. */
  readonly wanted: number | null;
  /** By key: what is to become of keys that are held back. */
  readonly parked: ReadonlyMap<string, ParkedKeyOrder>;
  /** Events that were left out of documents: of the view in whichever shape, as the log is the same for all. */
  readonly skipped: SkippedEvents;
}

export interface RebuildOrder {
  readonly version: number;
  /** Events a second at most; null: as fast as it goes. */
  readonly rate: number | null;
  readonly switch: RebuildSwitch;
  readonly paused: boolean;
  /** Level with the generation that is read, and compared with it. */
  readonly ready: boolean;
  readonly comparison: Comparison | null;
  /** Somebody has said that reads are to go to it. */
  readonly switchRequested: boolean;
  /** Why it goes no further; null while it does. */
  readonly error: string | null;
}

export interface PreviousGeneration {
  readonly version: number;
  /** Until when it is fed. */
  readonly until: Instant;
}

export interface ParkedKeyOrder {
  readonly version: number;
  readonly order: ParkedOrder;
  /** The event that was left out by it, by {@link placeOfSkipped}; null for none (yet). */
  readonly left: string | null;
}

const none: ProjectionOrders = {
  lastVersion: 0,
  rebuild: null,
  live: null,
  previous: null,
  wanted: null,
  parked: new Map(),
  skipped: new Set(),
};

/** The orders for one shape of a view; those for other shapes are another release's. */
export function projectionOrdersFold(schema: number): Fold<ProjectionOrders, ProjectionEvent> {
  return {
    initial: none,
    evolve(before, event, { metadata }) {
      const state = event.type === 'ParkedEventSkipped' ? skipped(before, event.data) : before;
      if (event.data.schema !== schema) return state;
      const lastVersion = Math.max(state.lastVersion, event.data.version);
      return evolveOrders({ ...state, lastVersion }, event, fromIso(metadata.occurredAt));
    },
  };
}

function skipped(
  state: ProjectionOrders,
  event: Extract<ProjectionEvent, { type: 'ParkedEventSkipped' }>['data'],
): ProjectionOrders {
  return { ...state, skipped: new Set(state.skipped).add(placeOfSkipped(event)) };
}

function evolveOrders(
  state: ProjectionOrders,
  event: ProjectionEvent,
  at: Instant,
): ProjectionOrders {
  const { version } = event.data;
  if (event.type === 'ProjectionRebuildRequested') {
    const { rate, switch: how } = event.data;
    const fresh = { paused: false, ready: false, comparison: null, switchRequested: false };
    return { ...state, rebuild: { version, rate, switch: how, ...fresh, error: null } };
  }
  if (event.type === 'ProjectionSwitched') {
    const { before } = event.data;
    return {
      ...state,
      rebuild: state.rebuild?.version === version ? null : state.rebuild,
      live: version,
      previous: before === null ? null : { version: before, until: at + KEPT_FOR },
      wanted: null,
    };
  }
  if (event.type === 'ParkedKeyOrdered') {
    const { key, order } = event.data;
    // Who repeats an order that is not settled means the same event.
    const before = state.parked.get(key);
    const left = before?.order === order ? before.left : null;
    return { ...state, parked: new Map(state.parked).set(key, { version, order, left }) };
  }
  // Versions go on from there, should a release of that shape come back.
  if (event.type === 'ProjectionShapeDiscarded') {
    return { ...none, lastVersion: state.lastVersion, skipped: state.skipped };
  }
  if (event.type === 'ParkedEventSkipped') {
    const { key } = event.data;
    const ordered = state.parked.get(key);
    if (ordered?.order !== 'skip') return state;
    const left = placeOfSkipped(event.data);
    return { ...state, parked: new Map(state.parked).set(key, { ...ordered, left }) };
  }
  if (event.type === 'ParkedKeySettled') {
    const parked = new Map(state.parked);
    parked.delete(event.data.key);
    return { ...state, parked };
  }
  if (state.rebuild?.version !== version) {
    return event.type === 'ProjectionSwitchRequested' ? { ...state, wanted: version } : state;
  }
  return { ...state, rebuild: evolveRebuild(state.rebuild, event) };
}

function evolveRebuild(
  rebuild: RebuildOrder,
  event: Exclude<
    ProjectionEvent,
    {
      type:
        | 'ProjectionRebuildRequested'
        | 'ProjectionSwitched'
        | 'ParkedKeyOrdered'
        | 'ParkedKeySettled'
        | 'ParkedEventSkipped'
        | 'ProjectionShapeDiscarded';
    }
  >,
): RebuildOrder | null {
  switch (event.type) {
    case 'ProjectionRebuildPaused':
      return { ...rebuild, paused: true };
    case 'ProjectionRebuildResumed':
      return { ...rebuild, paused: false };
    case 'ProjectionRebuildCanceled':
      return null;
    case 'ProjectionRebuildFailed':
      return { ...rebuild, error: event.data.error };
    case 'ProjectionRebuildReady':
      return { ...rebuild, ready: true, comparison: event.data.comparison };
    case 'ProjectionSwitchRequested':
      return { ...rebuild, switchRequested: true };
  }
}

/** The rebuild that is under way; null for none, and for one that failed. */
export function rebuildUnderWay({ rebuild }: ProjectionOrders): RebuildOrder | null {
  return rebuild === null || rebuild.error !== null ? null : rebuild;
}
