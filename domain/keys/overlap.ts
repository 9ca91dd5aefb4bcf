import type { Instant } from '../clock.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import { holdKey, inLine, type KeyClaim, type KeyName, type KeyState } from './key.ts';
import type { OverlapPolicy } from '../vocabulary.ts';

/**
 * The task itself as the key of its runs, under the agent whom it belonged to as they were requested. Of a task that was
 * handed over there is one for each; who wants one of them looks at the others: see {@link joinOverlap}.
 */
export function overlapKey(taskId: string, owner: string): KeyName {
  return { kind: 'overlap', owner, key: taskId };
}

export type OverlapDecision =
  /** To be requested: it may start, or waits for those in {@link aheadOf} to end. */
  | { readonly outcome: 'held' | 'waiting'; readonly events: readonly KeyEvent[] }
  /** Not to be requested: this run stands in the way. */
  | { readonly outcome: 'skip'; readonly because_of: string };

/**
 * What a new run does when another of its task is not over: `skip` gives way, `queue` lets one wait and skips
 * the next, `cancel_running` waits for what it is to cancel to have ended. A run that has its place keeps it.
 *
 * A run of a backfill gives way by waiting, behind all others, whatever the policy: nobody would ask for it again. And
 * as it waits it keeps no other from coming.
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
    // Without a holder, the first in line is the one that is about to go.
    const waiting = holders.length > 0 ? waiters[0] : waiters[1];
    if (policy === 'queue' && waiting !== undefined) {
      return { outcome: 'skip', because_of: waiting.run_id };
    }
  }
  return holdKey(state, claim, now);
}

/**
 * Takes in who stands in another key of the same task: each as what it is there, so that whoever comes to this key gives
 * way to it, or waits for it. It leaves as any other whose run has ended.
 *
 * @param isOver runs that have lost their claim to that place
 */
export function joinOverlap(
  state: KeyState,
  other: KeyState,
  isOver: ReadonlySet<string>,
): { readonly state: KeyState; readonly events: readonly KeyEvent[] } {
  const here = new Set([...state.holders, ...state.waiters].map(({ run_id }) => run_id));
  const isNew = ({ run_id }: { readonly run_id: string }): boolean =>
    !here.has(run_id) && !isOver.has(run_id);
  const holders = other.holders.filter(isNew);
  const waiters = other.waiters.filter(isNew);
  const [first] = [...holders, ...waiters];
  if (first === undefined) return { state, events: [] };
  const joined = {
    ...state,
    holders: [...state.holders, ...holders],
    waiters: inLine([...state.waiters, ...waiters]),
  };
  const type = holders.length > 0 ? 'KeyHeld' : 'KeyWaited';
  return { state: joined, events: [{ type, data: { ...joined, run_id: first.run_id } }] };
}

/** The runs that must be over before a run that waits may go: the holders, and who stands in line before it. */
export function aheadOf(state: KeyState, runId: string): readonly string[] {
  const place = state.waiters.findIndex((waiter) => waiter.run_id === runId);
  const before = place < 0 ? [] : state.waiters.slice(0, place);
  return [...state.holders, ...before]
    .map(({ run_id }) => run_id)
    .filter((other) => other !== runId);
}
