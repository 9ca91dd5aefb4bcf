import { fromIso, type Instant } from '../clock.ts';
import { isConflict, type EventStore } from '../event-store.ts';
import type { RunEvent } from '../events/catalogue.ts';
import { load, toNewEvents, type Fold } from '../handle.ts';
import { newId } from '../ids.ts';
import type { KeyContext } from './key-stream.ts';
import type { KeyKind, KeyName } from './key.ts';
import { hasEnded, runFold, type RunState } from '../runs/run.ts';
import { streams } from '../streams.ts';
import type { RunTrigger } from '../vocabulary.ts';

/** After this long a reservation whose run was never requested may be voided. Milliseconds. */
export const RESERVATION_LIFE = 60_000;

/** What a run has of a key: a slot, a place in line, or its use. */
export interface KeyPlace {
  readonly run_id: string;
  readonly trigger: RunTrigger;
  /** Since when, by the clock. */
  readonly since: string;
  /** Of a slot: the attempt that it is held for. */
  readonly attempt?: number;
}

/** A run as its own stream says, and when that last said something; null for an empty one. */
export interface SeenRun {
  readonly run: RunState;
  readonly lastAt: string | null;
}

export type Verdict =
  /** It goes on, or may at any moment. */
  | 'living'
  /** It is over and never needs its place again (a slot: not for that attempt). */
  | 'over'
  /** It holds a slot, could start, and has not for a whole lease. */
  | 'idle'
  /** It was never requested, and nobody owes it. */
  | 'unborn';

/**
 * What a run's place is worth. Where the request of a run is owed by the log itself (a fire, a published event
 * or a backfill stands behind it), an empty stream is only late: the request is made up, and its place is waiting for it.
 *
 * @param lease milliseconds in which a run that holds a concurrency key must start
 */
export function judge(
  place: KeyPlace,
  kind: KeyKind,
  { run, lastAt }: SeenRun,
  now: Instant,
  lease: number,
): Verdict {
  if (run.state === 'none') {
    const owed = place.trigger !== 'manual';
    return !owed && now - fromIso(place.since) > RESERVATION_LIFE ? 'unborn' : 'living';
  }
  if (hasEnded(run)) return 'over';
  if (run.state === 'running' || kind !== 'concurrency') return 'living';
  if (!('request' in run)) return 'living';
  // Nobody waits in line before his time: who put him there did not know yet that an attempt has failed.
  if (place.attempt === undefined) return fromIso(run.run_at) > now ? 'over' : 'living';
  // In a back-off nothing is held: whoever takes it up again holds it for the next attempt.
  if (run.state === 'retrying' && place.attempt <= run.attempt) return 'over';
  const last = Math.max(fromIso(place.since), lastAt === null ? 0 : fromIso(lastAt));
  return now - last > lease ? 'idle' : 'living';
}

/** A run with the time of its last event. */
const seenFold: Fold<SeenRun, RunEvent> = {
  initial: { run: runFold.initial, lastAt: null },
  evolve: ({ run }, event, at) => ({
    run: runFold.evolve(run, event, at),
    lastAt: at.metadata.occurredAt,
  }),
};

/**
 * Which of the runs have lost what they have of a key; the caller takes it from them, expecting the revision of the
 * key that he had read before asking.
 *
 * Where a run could still begin, its stream is closed to that first: an unborn one by `Abandoned`, expecting none;
 * one that is idle with its slot by `RunInterrupted`, expecting the revision seen. Whoever was about to append
 * its request or its start now fails, and must come to the key again. So no start is ever written behind
 * the back of somebody who took the slot away: it comes before (then this append is the lost race), or it
 * never comes. A crash between closing the stream and releasing the key leaves a place that is found dead again.
 */
export class Judgement {
  private readonly store: EventStore;
  private readonly context: KeyContext;
  private readonly lease: number;
  /**
   * Whose streams this judgement has closed, with the place they had. After a lost race for the key they are dead
   * still, if that is the same place: who came back holds since later.
   */
  private readonly closed = new Map<string, string>();

  /** @param lease milliseconds in which a run that holds a concurrency key must start */
  constructor(store: EventStore, context: KeyContext, lease = 0) {
    this.store = store;
    this.context = context;
    this.lease = lease;
  }

  /** Runs among the places that have no claim to them any more. Reads each run's stream. */
  async dead(key: KeyName, places: readonly KeyPlace[]): Promise<readonly string[]> {
    const dead: string[] = [];
    for (const place of places) if (await this.isDead(key, place)) dead.push(place.run_id);
    return dead;
  }

  private async isDead(key: KeyName, place: KeyPlace): Promise<boolean> {
    const { run_id, since } = place;
    if (this.closed.get(run_id) === since) return true;
    const stream = streams.run(run_id);
    const { state, revision } = await load(this.store, stream, seenFold);
    const verdict = judge(place, key.kind, state, this.context.now, this.lease);
    if (verdict === 'living' || verdict === 'over') return verdict === 'over';
    if (!(await this.close(stream, closingOf(verdict, key, this.context), revision))) return false;
    this.closed.set(run_id, since);
    return true;
  }

  /** @returns false when somebody was faster: then it is not dead */
  private async close(
    stream: string,
    event: RunEvent,
    expected: number | 'none',
  ): Promise<boolean> {
    const { store, context } = this;
    const events = toNewEvents(stream, [event], { ...context, commandId: newId(context.now) });
    try {
      await store.append(stream, events, expected);
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }
}

function closingOf(verdict: 'idle' | 'unborn', key: KeyName, context: KeyContext): RunEvent {
  return verdict === 'unborn'
    ? { type: 'Abandoned', data: { reservation: streams.key(key.kind, key.owner, key.key) } }
    : { type: 'RunInterrupted', data: { worker: context.source, cause: 'slot_expired' } };
}
