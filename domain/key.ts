import { fromIso, toIso, type Instant } from './clock.ts';
import type { DataOf, KeyEvent } from './events/catalogue.ts';
import type { Fold } from './handle.ts';

/**
 * A key that runs share: `concurrency` (at most so many at a time), `overlap` (the task itself as the key),
 * `dedupe` (used or not). Every event carries the state that results, so only the last one is read.
 */
export type KeyState = Omit<DataOf<'KeyHeld'>, 'run_id'>;
export type KeyKind = KeyState['kind'];
export type KeyHolder = KeyState['holders'][number];
export type KeyWaiter = KeyState['waiters'][number];

/** The state of a key that was never used. */
export function unusedKey(kind: KeyKind, owner: string, key: string): KeyState {
  return { kind, owner, key, holders: [], waiters: [], used: null };
}

/** `null` before the first event. */
export const keyFold: Fold<KeyState | null, KeyEvent> = {
  initial: null,
  evolve(_state, event) {
    const { run_id: _about, ...state } = event.data;
    return state;
  },
};

/** A run that wants the key. Each goes by its own task's limit. */
export interface KeyClaim {
  readonly run_id: string;
  readonly task_id: string;
  readonly priority: number;
  /** Since when it wants it: the older goes first within a priority. */
  readonly since: Instant;
  readonly limit: number;
}

export type KeyDecision =
  /** It has the key, now or already. */
  | { readonly outcome: 'held'; readonly events: readonly KeyEvent[] }
  /** It stands in line. */
  | { readonly outcome: 'waiting'; readonly events: readonly KeyEvent[] };

/**
 * Takes a slot, or stands in line: by priority, then by age. A run that holds the key holds it again without
 * effect (after a take-over). Nobody goes past a waiter who could go first.
 */
export function holdKey(state: KeyState, claim: KeyClaim, now: Instant): KeyDecision {
  const { run_id, task_id } = claim;
  if (state.holders.some((holder) => holder.run_id === run_id))
    return { outcome: 'held', events: [] };
  const waiting = state.waiters.some((waiter) => waiter.run_id === run_id);
  const waiters = waiting ? state.waiters : inLine([...state.waiters, waiterOf(claim)]);
  const ahead = waiters.findIndex((waiter) => waiter.run_id === run_id);
  const free = state.holders.length + ahead < claim.limit;
  if (free) {
    const holders = [...state.holders, { run_id, task_id, since: toIso(now) }];
    const rest = waiters.filter((waiter) => waiter.run_id !== run_id);
    return {
      outcome: 'held',
      events: [{ type: 'KeyHeld', data: { ...state, holders, waiters: rest, run_id } }],
    };
  }
  if (waiting) return { outcome: 'waiting', events: [] };
  return {
    outcome: 'waiting',
    events: [{ type: 'KeyWaited', data: { ...state, waiters, run_id } }],
  };
}

/** Gives up a slot or a place in line; nothing when the run has neither. */
export function releaseKey(state: KeyState, runId: string): readonly KeyEvent[] {
  const holders = state.holders.filter((holder) => holder.run_id !== runId);
  const waiters = state.waiters.filter((waiter) => waiter.run_id !== runId);
  const unchanged =
    holders.length === state.holders.length && waiters.length === state.waiters.length;
  if (unchanged) return [];
  return [{ type: 'KeyReleased', data: { ...state, holders, waiters, run_id: runId } }];
}

/** The runs that may go now, in the order of the line. */
export function nextInLine(state: KeyState): readonly KeyWaiter[] {
  return state.waiters.filter((waiter, place) => state.holders.length + place < waiter.limit);
}

export type DedupeDecision =
  | { readonly outcome: 'used'; readonly events: readonly KeyEvent[] }
  /** The earlier run stands for this one. */
  | { readonly outcome: 'duplicate'; readonly earlier: NonNullable<KeyState['used']> };

/**
 * Uses a dedupe key for a run, unless a run used it within the window before; without a window, unless
 * such a run is unfinished.
 *
 * @param at nominal time of the fire, or the time of the request
 * @param windowSeconds null for as long as the earlier run is unfinished
 * @param earlierIsUnfinished whether the run of the last use goes on; asked only without a window
 */
export function useDedupeKey(
  state: KeyState,
  use: { readonly run_id: string; readonly task_id: string; readonly at: Instant },
  windowSeconds: number | null,
  earlierIsUnfinished: boolean,
): DedupeDecision {
  const { used } = state;
  if (used !== null && used.run_id !== use.run_id) {
    const within =
      windowSeconds === null
        ? earlierIsUnfinished
        : Math.abs(use.at - fromIso(used.at)) < windowSeconds * 1000;
    if (within) return { outcome: 'duplicate', earlier: used };
  }
  if (used?.run_id === use.run_id) return { outcome: 'used', events: [] };
  const { run_id, task_id } = use;
  const data = { ...state, used: { run_id, task_id, at: toIso(use.at) }, run_id };
  return { outcome: 'used', events: [{ type: 'KeyUsed', data }] };
}

const waiterOf = ({ run_id, task_id, priority, since, limit }: KeyClaim): KeyWaiter => ({
  run_id,
  task_id,
  priority,
  since: toIso(since),
  limit,
});

function inLine(waiters: readonly KeyWaiter[]): KeyWaiter[] {
  return [...waiters].sort(
    (a, b) =>
      a.priority - b.priority || a.since.localeCompare(b.since) || a.run_id.localeCompare(b.run_id),
  );
}
