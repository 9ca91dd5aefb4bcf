import { toIso, type Instant } from '../clock.ts';
import type { DataOf, KeyEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import type { RunTrigger } from '../vocabulary.ts';

/**
 * A key that runs share: `concurrency` (a limited number at a time), `overlap` (the task itself as the key) or
 * `dedupe` (used or not). Every event carries the resulting state, so only the last one is read.
 *
 *   ──KeyHeld──► holder ──KeyReleased──►          ──KeyWaited──► waiter ──KeyHeld──► holder
 *                                                                  └──KeyReleased──► (gave up its place)
 */
export type KeyState = Omit<DataOf<'KeyHeld'>, 'run_id'>;
export type KeyKind = KeyState['kind'];
export type KeyHolder = KeyState['holders'][number];
export type KeyWaiter = KeyState['waiters'][number];

/** Identifies a key, and its stream. */
export type KeyName = Pick<KeyState, 'kind' | 'owner' | 'key'>;

/** The most holders of a key, even with a larger limit. An event carries all of them and must fit into the log. */
export const MAX_HOLDERS = 2000;

/**
 * The most waiters that are recorded. They are limited because each event carries all of them. Later runs wait
 * unrecorded, and get a place when the queue gets shorter. The order of all waiting runs stays the same.
 */
export const MAX_WAITERS = 20;

/** The state of a key that was never used. */
export function unusedKey({ kind, owner, key }: KeyName): KeyState {
  return { kind, owner, key, holders: [], waiters: [], used: null };
}

/** The state that results from an event. */
export function stateAfter({ data }: KeyEvent): KeyState {
  const { run_id: _about, ...state } = data;
  return state;
}

/** `null` before the first event. */
export const keyFold: Fold<KeyState | null, KeyEvent> = {
  initial: null,
  evolve: (_state, event) => stateAfter(event),
};

/** A run that wants the key, by its own task's limit. */
export interface KeyClaim {
  readonly run_id: string;
  readonly task_id: string;
  readonly trigger: RunTrigger;
  readonly priority: number;
  /** The time since which the run has wanted the key. Within a priority, the oldest goes first. */
  readonly since: Instant;
  readonly limit: number;
  /** The attempt that needs the slot; 0 if the slot is held from the request on. */
  readonly attempt: number;
}

export interface KeyDecision {
  /** `held`: the run has the key, from now on or since an earlier time. */
  readonly outcome: 'held' | 'waiting';
  readonly events: readonly KeyEvent[];
}

/**
 * Takes a slot or a place among the waiters, ordered by priority, then age. No run overtakes a waiter, which could
 * otherwise wait forever for a slot within its own, smaller limit.
 *
 * A run that holds the key keeps it: after a takeover, a crash between taking and starting, or a lost release. For a
 * concurrency key this appends, so that another process about to reclaim the slot loses the race.
 */
export function holdKey(state: KeyState, claim: KeyClaim, now: Instant): KeyDecision {
  const { run_id } = claim;
  const holding = state.holders.find((holder) => holder.run_id === run_id);
  if (holding !== undefined) return holdAgain(state, holding, claim, now);
  const waiting = state.waiters.find((waiter) => waiter.run_id === run_id);
  const others = state.waiters.filter((waiter) => waiter.run_id !== run_id);
  const queue = sortWaiters([...others, waiting ?? waiterOf(claim, now)]);
  const ahead = queue.findIndex((waiter) => waiter.run_id === run_id);
  if (state.holders.length + ahead < holderLimit(claim.limit)) {
    const holders = [...state.holders, holderOf(claim, now)];
    const data = { ...state, holders, waiters: others, run_id };
    return { outcome: 'held', events: [{ type: 'KeyHeld', data }] };
  }
  if (waiting !== undefined || ahead >= MAX_WAITERS) return { outcome: 'waiting', events: [] };
  const data = { ...state, waiters: queue.slice(0, MAX_WAITERS), run_id };
  return { outcome: 'waiting', events: [{ type: 'KeyWaited', data }] };
}

function holdAgain(
  state: KeyState,
  holding: KeyHolder,
  claim: KeyClaim,
  now: Instant,
): KeyDecision {
  // An overlap slot is reclaimed only from a run that has ended, so there is no race.
  if (state.kind !== 'concurrency') return { outcome: 'held', events: [] };
  const attempt = Math.max(holding.attempt, claim.attempt);
  const again = { ...holding, attempt, since: toIso(now) };
  const holders = state.holders.map((holder) => (holder === holding ? again : holder));
  const data = { ...state, holders, run_id: claim.run_id };
  return { outcome: 'held', events: [{ type: 'KeyHeld', data }] };
}

/**
 * Gives up a slot or a waiter's place. Does nothing if the run has neither.
 *
 * @param endedAttempt gives up only the slot, and only if it is not held for a later attempt, because a late release
 *   must not take the slot of the next attempt
 */
export function releaseKey(
  state: KeyState,
  runId: string,
  endedAttempt?: number,
): readonly KeyEvent[] {
  const holders = state.holders.filter(
    ({ run_id, attempt }) => run_id !== runId || attempt > (endedAttempt ?? Infinity),
  );
  const after = { ...state, holders };
  if (endedAttempt === undefined) {
    after.waiters = state.waiters.filter(({ run_id }) => run_id !== runId);
  }
  return released(state, after, runId);
}

/** Gives up a waiter's place. A slot that the run has obtained in the meantime stays. */
export function releaseWaiter(state: KeyState, runId: string): readonly KeyEvent[] {
  const waiters = state.waiters.filter(({ run_id }) => run_id !== runId);
  return released(state, { ...state, waiters }, runId);
}

function released(before: KeyState, after: KeyState, run_id: string): readonly KeyEvent[] {
  const isUnchanged =
    after.holders.length === before.holders.length &&
    after.waiters.length === before.waiters.length;
  return isUnchanged ? [] : [{ type: 'KeyReleased', data: { ...after, run_id } }];
}

/** Gives up the slots and places of several runs, one event each. */
export function releaseAll(
  state: KeyState,
  runIds: Iterable<string>,
): { readonly state: KeyState; readonly events: readonly KeyEvent[] } {
  const events: KeyEvent[] = [];
  let after = state;
  for (const runId of runIds) {
    for (const event of releaseKey(after, runId)) {
      events.push(event);
      after = stateAfter(event);
    }
  }
  return { state: after, events };
}

/** The waiters that may take a slot now, in order. */
export function admissibleWaiters(state: KeyState): readonly KeyWaiter[] {
  return state.waiters.filter(
    (waiter, place) => state.holders.length + place < holderLimit(waiter.limit),
  );
}

const holderLimit = (limit: number): number => Math.min(limit, MAX_HOLDERS);

const holderOf = (claim: KeyClaim, now: Instant): KeyHolder => {
  const { run_id, task_id, trigger, limit, attempt } = claim;
  return { run_id, task_id, trigger, since: toIso(now), limit, attempt };
};

const waiterOf = (claim: KeyClaim, now: Instant): KeyWaiter => {
  const { run_id, task_id, trigger, priority, limit } = claim;
  const since = toIso(claim.since);
  return { run_id, task_id, trigger, priority, since, waiting_since: toIso(now), limit };
};

/** Waiters in order: by priority, 1 first, then by age, the oldest first. */
export function sortWaiters(waiters: readonly KeyWaiter[]): KeyWaiter[] {
  return [...waiters].sort(
    (a, b) =>
      a.priority - b.priority ||
      compareStrings(a.since, b.since) ||
      compareStrings(a.run_id, b.run_id),
  );
}

const compareStrings = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
