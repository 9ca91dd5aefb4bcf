import { toIso, type Instant } from '../clock.ts';
import type { DataOf, KeyEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import type { RunTrigger } from '../vocabulary.ts';

/**
 * A key that runs share: `concurrency` (at most so many at a time), `overlap` (the task itself as the key),
 * `dedupe` (used or not). Every event carries the state that results, so only the last one is read.
 *
 * A run that wants a slot holds it, or stands in line:
 *
 *   ──KeyHeld──► holder ──KeyReleased──►          ──KeyWaited──► waiter ──KeyHeld──► holder
 *                                                                  └──KeyReleased──► (gave up its place)
 */
export type KeyState = Omit<DataOf<'KeyHeld'>, 'run_id'>;
export type KeyKind = KeyState['kind'];
export type KeyHolder = KeyState['holders'][number];
export type KeyWaiter = KeyState['waiters'][number];

/** What names a key, and its stream. */
export type KeyName = Pick<KeyState, 'kind' | 'owner' | 'key'>;

/**
 * Most holders of a key, whatever its tasks' limits: an event carries them all and must stay below the
 * log's limit for one event.
 */
export const MOST_HOLDERS = 2000;

/**
 * Longest line that is written down: each event carries it. Who comes later and would stand behind it waits
 * without a place, and comes into line as it gets shorter; the order among all of them stays.
 */
export const LONGEST_LINE = 20;

/** The state of a key that was never used. */
export function unusedKey({ kind, owner, key }: KeyName): KeyState {
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
  readonly trigger: RunTrigger;
  readonly priority: number;
  /** Since when it wants it: the older goes first within a priority. */
  readonly since: Instant;
  readonly limit: number;
  /** The attempt that it wants to begin or to go on with; 0 where the slot is held from the request on. */
  readonly attempt: number;
}

export interface KeyDecision {
  /** `held`: it has the key, now or already; `waiting`: it does not. */
  readonly outcome: 'held' | 'waiting';
  readonly events: readonly KeyEvent[];
}

/**
 * Takes a slot, or stands in line: by priority, then by age. Nobody goes past a waiter, as the one in front
 * might else wait for ever for a slot by its own, smaller limit.
 *
 * A run that holds the key goes on holding it: after a take-over, a crash between taking and starting, or a
 * back-off whose release was lost. For a concurrency key that is written down too. It changes nobody's slot,
 * but it makes whoever has read the stream before, and is about to take the slot back, lose the race.
 */
export function holdKey(state: KeyState, claim: KeyClaim, now: Instant): KeyDecision {
  const { run_id } = claim;
  const holding = state.holders.find((holder) => holder.run_id === run_id);
  if (holding !== undefined) return holdAgain(state, holding, claim, now);
  const standing = state.waiters.find((waiter) => waiter.run_id === run_id);
  const others = state.waiters.filter((waiter) => waiter.run_id !== run_id);
  const line = inLine([...others, standing ?? waiterOf(claim, now)]);
  const ahead = line.findIndex((waiter) => waiter.run_id === run_id);
  if (state.holders.length + ahead < mostHolders(claim.limit)) {
    const holders = [...state.holders, holderOf(claim, now)];
    const data = { ...state, holders, waiters: others, run_id };
    return { outcome: 'held', events: [{ type: 'KeyHeld', data }] };
  }
  if (standing !== undefined || ahead >= LONGEST_LINE) return { outcome: 'waiting', events: [] };
  const waiters = line.slice(0, LONGEST_LINE);
  return {
    outcome: 'waiting',
    events: [{ type: 'KeyWaited', data: { ...state, waiters, run_id } }],
  };
}

function holdAgain(
  state: KeyState,
  holding: KeyHolder,
  claim: KeyClaim,
  now: Instant,
): KeyDecision {
  // An overlap's slot is taken back only from a run that has ended: nobody to race with.
  if (state.kind !== 'concurrency') return { outcome: 'held', events: [] };
  const attempt = Math.max(holding.attempt, claim.attempt);
  const again = { ...holding, attempt, since: toIso(now) };
  const holders = state.holders.map((holder) => (holder === holding ? again : holder));
  const data = { ...state, holders, run_id: claim.run_id };
  return { outcome: 'held', events: [{ type: 'KeyHeld', data }] };
}

/**
 * Gives up a slot or a place in line; nothing when the run has neither.
 *
 * @param endedAttempt gives up the slot alone, and only if it is not yet held for a later attempt: who says late
 *   that an attempt is over must not take the slot of the next one
 */
export function releaseKey(
  state: KeyState,
  runId: string,
  endedAttempt?: number,
): readonly KeyEvent[] {
  const leaves = (holder: KeyHolder): boolean =>
    holder.run_id === runId && (endedAttempt === undefined || holder.attempt <= endedAttempt);
  const holders = state.holders.filter((holder) => !leaves(holder));
  const waiters =
    endedAttempt === undefined
      ? state.waiters.filter((waiter) => waiter.run_id !== runId)
      : state.waiters;
  const unchanged =
    holders.length === state.holders.length && waiters.length === state.waiters.length;
  if (unchanged) return [];
  return [{ type: 'KeyReleased', data: { ...state, holders, waiters, run_id: runId } }];
}

/** Gives up a place in line; a slot that the run has meanwhile stays. */
export function leaveLine(state: KeyState, runId: string): readonly KeyEvent[] {
  const waiters = state.waiters.filter((waiter) => waiter.run_id !== runId);
  if (waiters.length === state.waiters.length) return [];
  return [{ type: 'KeyReleased', data: { ...state, waiters, run_id: runId } }];
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
      const { run_id: _about, ...resulting } = event.data;
      after = resulting;
    }
  }
  return { state: after, events };
}

/** The runs that may go now, in the order of the line. */
export function nextInLine(state: KeyState): readonly KeyWaiter[] {
  return state.waiters.filter(
    (waiter, place) => state.holders.length + place < mostHolders(waiter.limit),
  );
}

/** Where a claim stands that was not decided: what {@link holdKey} would come to, without the work of an event. */
export interface Standing {
  /** It has a slot. */
  readonly holds: boolean;
  /** It has a place in line. */
  readonly placed: boolean;
  /** It would get a slot. */
  readonly mayGo: boolean;
  /** How many waiters go before it. */
  readonly ahead: number;
}

/** Says where a claim stands. Reads each holder and waiter once: it is asked for every run that comes to a busy key. */
export function standingOf(state: KeyState, claim: KeyClaim): Standing {
  const { run_id, priority } = claim;
  const holds = state.holders.some((holder) => holder.run_id === run_id);
  let since: string | null = null;
  let ahead = 0;
  let place = -1;
  for (const [index, waiter] of state.waiters.entries()) {
    if (waiter.run_id === run_id) place = index;
    else if (waiter.priority < priority) ahead += 1;
    else if (waiter.priority === priority) {
      since ??= toIso(claim.since);
      const age = compareText(waiter.since, since) || compareText(waiter.run_id, run_id);
      if (age < 0) ahead += 1;
    }
  }
  const placed = place >= 0;
  // Whoever stands in line goes by its place there, whatever its claim says by now.
  if (placed) ahead = place;
  const mayGo = !holds && state.holders.length + ahead < mostHolders(claim.limit);
  return { holds, placed, mayGo, ahead };
}

/** Whether a claim has certainly to wait without a place in line: it would change nothing. */
export function standsBehindTheLine(state: KeyState, claim: KeyClaim): boolean {
  const { holds, placed, mayGo, ahead } = standingOf(state, claim);
  return !holds && !placed && !mayGo && ahead >= LONGEST_LINE;
}

const mostHolders = (limit: number): number => Math.min(limit, MOST_HOLDERS);

const holderOf = (claim: KeyClaim, now: Instant): KeyHolder => {
  const { run_id, task_id, trigger, limit, attempt } = claim;
  return { run_id, task_id, trigger, since: toIso(now), limit, attempt };
};

const waiterOf = (claim: KeyClaim, now: Instant): KeyWaiter => {
  const { run_id, task_id, trigger, priority, limit } = claim;
  const since = toIso(claim.since);
  return { run_id, task_id, trigger, priority, since, waiting_since: toIso(now), limit };
};

/** Waiters in the order of a line: priority 1 first, then the older. */
export function inLine(waiters: readonly KeyWaiter[]): KeyWaiter[] {
  return [...waiters].sort(
    (a, b) =>
      a.priority - b.priority || compareText(a.since, b.since) || compareText(a.run_id, b.run_id),
  );
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
