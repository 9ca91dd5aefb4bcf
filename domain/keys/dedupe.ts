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

/** The state of the run of an earlier use. */
export type EarlierRun =
  | 'unfinished'
  | 'finished'
  /** The run never ran: it was skipped, or was never requested. Its use does not count. */
  | 'void';

export type DedupeDecision =
  | { readonly outcome: 'used'; readonly events: readonly KeyEvent[] }
  | { readonly outcome: 'duplicate'; readonly earlier: KeyUse };

/**
 * The use that might make a run a duplicate: any use within the window on either side, because fires may come out of
 * order. The state of its run decides. null if the key is free.
 *
 * @param windowSeconds null: for as long as the earlier run is unfinished
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
 * Uses a dedupe key for a run, unless another run used it within the window or, without a window, is unfinished. A run
 * that has used the key already keeps it.
 *
 * @param earlier what happened to the run of {@link earlierUse}
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
    const counts = windowSeconds === null ? earlier === 'unfinished' : earlier !== 'void';
    if (counts) return { outcome: 'duplicate', earlier: before };
  }
  const { used } = state;
  const { run_id, task_id, trigger, at } = use;
  if (used?.run_id === run_id) return { outcome: 'used', events: [] };
  const own = { run_id, task_id, trigger, at: toIso(at), since: toIso(now) };
  const using: KeyEvent = { type: 'KeyUsed', data: { ...state, used: own, run_id } };
  const isLatest = used === null || before !== null || windowSeconds === null;
  if (isLatest || at >= fromIso(used.at)) return { outcome: 'used', events: [using] };
  // The last event must carry the latest time, because windows count from it.
  const latest: KeyEvent = { type: 'KeyUsed', data: { ...state, run_id: used.run_id } };
  return { outcome: 'used', events: [using, latest] };
}
