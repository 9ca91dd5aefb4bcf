import { fromIso, toIso, type Instant } from '../clock.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import type { KeyState } from './key.ts';
import type { RunTrigger } from '../vocabulary.ts';

/** A run that wants to use a dedupe key. */
export interface DedupeUse {
  readonly run_id: string;
  readonly task_id: string;
  readonly trigger: RunTrigger;
  /** Nominal time of the fire; for manual and event triggers the time of the request. */
  readonly at: Instant;
}

export type KeyUse = NonNullable<KeyState['used']>;

/** What became of the run of an earlier use. */
export type EarlierRun =
  | 'unfinished'
  | 'finished'
  /** It never ran: it was skipped itself, or its request never came. Its use counts for nothing. */
  | 'void';

export type DedupeDecision =
  | { readonly outcome: 'used'; readonly events: readonly KeyEvent[] }
  /** The earlier run stands for this one. */
  | { readonly outcome: 'duplicate'; readonly earlier: KeyUse };

/**
 * The use that might make a run a duplicate: within the window before (or after, where fires come late and out
 * of order), or any without a window. What became of its run decides; null: nothing to ask, the key is free.
 *
 * @param windowSeconds null for as long as the earlier run is unfinished
 */
export function earlierUse(
  { used }: KeyState,
  use: DedupeUse,
  windowSeconds: number | null,
): KeyUse | null {
  if (used === null || used.run_id === use.run_id) return null;
  if (windowSeconds === null) return used;
  return Math.abs(use.at - fromIso(used.at)) < windowSeconds * 1000 ? used : null;
}

/**
 * Uses a dedupe key for a run, unless a run used it within the window; without a window, unless such a
 * run is unfinished. A run that used it already has it.
 *
 * @param earlier what became of the run of {@link earlierUse}
 */
export function useDedupeKey(
  state: KeyState,
  use: DedupeUse,
  windowSeconds: number | null,
  earlier: EarlierRun,
  now: Instant,
): DedupeDecision {
  const before = earlierUse(state, use, windowSeconds);
  if (before !== null) {
    const stands = windowSeconds === null ? earlier === 'unfinished' : earlier !== 'void';
    if (stands) return { outcome: 'duplicate', earlier: before };
  }
  const { used } = state;
  const { run_id, task_id, trigger, at } = use;
  if (used?.run_id === run_id) return { outcome: 'used', events: [] };
  const mine = { run_id, task_id, trigger, at: toIso(at), since: toIso(now) };
  const using: KeyEvent = { type: 'KeyUsed', data: { ...state, used: mine, run_id } };
  const isLatest = used === null || before !== null || windowSeconds === null;
  if (isLatest || at >= fromIso(used.at)) return { outcome: 'used', events: [using] };
  // A run that comes late does not make the key look older: windows count from the latest time, which stands last.
  const latest: KeyEvent = { type: 'KeyUsed', data: { ...state, run_id: used.run_id } };
  return { outcome: 'used', events: [using, latest] };
}
