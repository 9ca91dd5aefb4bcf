import type { Static } from '@sinclair/typebox';
import { fromIso, type Instant } from '../clock.ts';
import type { ProjectionEvent } from '../events/catalogue.ts';
import type { ComparisonSchema } from '../events/projection-events.ts';
import type { Fold } from '../handle.ts';
import { skippedEventKey, type SkippedEvents } from './skipped-events.ts';
import type { ParkedOrder, RebuildSwitch } from '../vocabulary.ts';

/** How long the previous generation is fed after a switch, for a rollback. Milliseconds. */
const PREVIOUS_KEPT_FOR = 24 * 60 * 60_000;

/** How a new generation differs from the live one. */
export type Comparison = Static<typeof ComparisonSchema>;

/** The present orders for a view, under one schema version. */
export interface ProjectionOrders {
  /** The highest version ever named. */
  readonly lastVersion: number;
  /** The rebuild that is running, or that failed last. */
  readonly rebuild: RebuildOrder | null;
  /** The version that was last switched to; null for none. */
  readonly live: number | null;
  /** The one before it. */
  readonly previous: PreviousGeneration | null;
  /** A kept version to which reads are to switch back. */
  readonly wanted: number | null;
  /** Orders for parked keys, by key. */
  readonly parked: ReadonlyMap<string, ParkedKeyOrder>;
  /** Events left out of documents in every schema version, because all versions share the log. */
  readonly skipped: SkippedEvents;
}

export interface RebuildOrder {
  readonly version: number;
  /** Maximum events a second; null: unlimited. */
  readonly rate: number | null;
  readonly switch: RebuildSwitch;
  readonly paused: boolean;
  /** Caught up with the live generation, and compared with it. */
  readonly ready: boolean;
  readonly comparison: Comparison | null;
  /** Whether reads are to switch to it. */
  readonly switchRequested: boolean;
  /** Why it failed; null while it has not. */
  readonly error: string | null;
}

export interface PreviousGeneration {
  readonly version: number;
  /** The time until which it is fed. */
  readonly until: Instant;
}

export interface ParkedKeyOrder {
  readonly version: number;
  readonly order: ParkedOrder;
  /** The event that it skipped, by {@link skippedEventKey}; null for none yet. */
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

/** Folds the orders for one schema version; other versions belong to other releases. */
export function projectionOrdersFold(schema: number): Fold<ProjectionOrders, ProjectionEvent> {
  return {
    initial: none,
    evolve(before, event, { metadata }) {
      let state = before;
      if (event.type === 'ParkedEventSkipped') {
        state = { ...before, skipped: new Set(before.skipped).add(skippedEventKey(event.data)) };
      }
      if (event.data.schema !== schema) return state;
      const lastVersion = Math.max(state.lastVersion, event.data.version);
      return evolveOrders({ ...state, lastVersion }, event, fromIso(metadata.occurredAt));
    },
  };
}

function evolveOrders(
  state: ProjectionOrders,
  event: ProjectionEvent,
  at: Instant,
): ProjectionOrders {
  const { version } = event.data;
  const withParked = (key: string, order: ParkedKeyOrder): ProjectionOrders => ({
    ...state,
    parked: new Map(state.parked).set(key, order),
  });
  switch (event.type) {
    case 'ProjectionRebuildRequested': {
      const { rate, switch: how } = event.data;
      const fresh = { paused: false, ready: false, comparison: null, switchRequested: false };
      return { ...state, rebuild: { version, rate, switch: how, ...fresh, error: null } };
    }
    case 'ProjectionSwitched': {
      const { before } = event.data;
      const previous = before === null ? null : { version: before, until: at + PREVIOUS_KEPT_FOR };
      const rebuild = state.rebuild?.version === version ? null : state.rebuild;
      return { ...state, rebuild, live: version, previous, wanted: null };
    }
    case 'ParkedKeyOrdered': {
      const { key, order } = event.data;
      // A repetition of an unsettled order concerns the same event.
      const before = state.parked.get(key);
      const left = before?.order === order ? before.left : null;
      return withParked(key, { version, order, left });
    }
    case 'ParkedEventSkipped': {
      const ordered = state.parked.get(event.data.key);
      if (ordered?.order !== 'skip') return state;
      return withParked(event.data.key, { ...ordered, left: skippedEventKey(event.data) });
    }
    case 'ParkedKeySettled': {
      const parked = new Map(state.parked);
      parked.delete(event.data.key);
      return { ...state, parked };
    }
    case 'ProjectionShapeDiscarded':
      // If a release of that schema returns, versions continue from there.
      return { ...none, lastVersion: state.lastVersion, skipped: state.skipped };
  }
  const { rebuild } = state;
  if (rebuild?.version !== version) {
    return event.type === 'ProjectionSwitchRequested' ? { ...state, wanted: version } : state;
  }
  const change = (changes: Partial<RebuildOrder>): ProjectionOrders => ({
    ...state,
    rebuild: { ...rebuild, ...changes },
  });
  switch (event.type) {
    case 'ProjectionRebuildPaused':
      return change({ paused: true });
    case 'ProjectionRebuildResumed':
      return change({ paused: false });
    case 'ProjectionRebuildCanceled':
      return { ...state, rebuild: null };
    case 'ProjectionRebuildFailed':
      return change({ error: event.data.error });
    case 'ProjectionRebuildReady':
      return change({ ready: true, comparison: event.data.comparison });
    case 'ProjectionSwitchRequested':
      return change({ switchRequested: true });
  }
}

/** The running rebuild; null if there is none, or if it failed. */
export function runningRebuild({ rebuild }: ProjectionOrders): RebuildOrder | null {
  return rebuild === null || rebuild.error !== null ? null : rebuild;
}
