import type { Instant } from '../clock.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import { holdKey, sortWaiters, type KeyClaim, type KeyName, type KeyState } from './key.ts';
import type { OverlapPolicy } from '../vocabulary.ts';

/**
 * The task itself as the key of its runs, under the agent that owned the task when they were requested. A task that
 * changed its owner has one key for each: see {@link joinOverlap}.
 */
export function overlapKey(taskId: string, owner: string): KeyName {
  return { kind: 'overlap', owner, key: taskId };
}

export type OverlapDecision =
  /** The run is requested: it may start, or waits for the runs in {@link runsAheadOf} to end. */
  | { readonly outcome: 'held' | 'waiting'; readonly events: readonly KeyEvent[] }
  /** The run is not requested, because of this other run. */
  | { readonly outcome: 'skip'; readonly because_of: string };

/**
 * The action of a new run when another run of its task is unfinished: `skip` skips it, `queue` lets one wait and skips
 * the next, `cancel_running` waits for the runs that it cancels. A run that has its place keeps it.
 *
 * A backfill's run always waits behind all others, because it would not be requested again. While it waits, it does not
 * prevent other runs.
 */
export function claimOverlap(
  state: KeyState,
  claim: KeyClaim,
  policy: Exclude<OverlapPolicy, 'allow'>,
  now: Instant,
): OverlapDecision {
  const { holders } = state;
  const waiters = state.waiters.filter(({ trigger }) => trigger !== 'backfill');
  const isMine = ({ run_id }: { readonly run_id: string }): boolean => run_id === claim.run_id;
  const known = holders.some(isMine) || waiters.some(isMine);
  const givesWay = !known && claim.trigger !== 'backfill';
  const [first] = [...holders, ...waiters];
  if (givesWay && first !== undefined) {
    if (policy === 'skip') return { outcome: 'skip', because_of: first.run_id };
    // Without a holder, the first waiter is about to start.
    const waiting = holders.length > 0 ? waiters[0] : waiters[1];
    if (policy === 'queue' && waiting !== undefined) {
      return { outcome: 'skip', because_of: waiting.run_id };
    }
  }
  return holdKey(state, claim, now);
}

/**
 * Adds the holders and waiters of another key of the same task, so that new runs wait for them or are skipped. They are
 * removed like any other run that has ended.
 *
 * @param stale runs that have lost their claim to that place
 */
export function joinOverlap(
  state: KeyState,
  other: KeyState,
  stale: ReadonlySet<string>,
): { readonly state: KeyState; readonly events: readonly KeyEvent[] } {
  const here = new Set([...state.holders, ...state.waiters].map(({ run_id }) => run_id));
  const isNew = ({ run_id }: { readonly run_id: string }): boolean =>
    !here.has(run_id) && !stale.has(run_id);
  const holders = other.holders.filter(isNew);
  const waiters = other.waiters.filter(isNew);
  const [first] = [...holders, ...waiters];
  if (first === undefined) return { state, events: [] };
  const joined = {
    ...state,
    holders: [...state.holders, ...holders],
    waiters: sortWaiters([...state.waiters, ...waiters]),
  };
  const type = holders.length > 0 ? 'KeyHeld' : 'KeyWaited';
  return { state: joined, events: [{ type, data: { ...joined, run_id: first.run_id } }] };
}

/** The runs that must end before a waiting run may start: the holders, and the waiters before it. */
export function runsAheadOf(state: KeyState, runId: string): readonly string[] {
  const place = state.waiters.findIndex((waiter) => waiter.run_id === runId);
  const before = place < 0 ? [] : state.waiters.slice(0, place);
  return [...state.holders, ...before]
    .map(({ run_id }) => run_id)
    .filter((other) => other !== runId);
}
