import { fromIso, type Instant } from '../clock.ts';
import type { EventStore } from '../event-store.ts';
import type { RunEvent } from '../events/catalogue.ts';
import { load, toNewEvents, type Fold } from '../handle.ts';
import { newId } from '../ids.ts';
import { changeKey, type KeyChanged, type KeyContext } from './key-stream.ts';
import { releaseAll, type KeyKind, type KeyName, type KeyState } from './key.ts';
import { releasesKey } from '../runs/run-waits.ts';
import { hasEnded, runFold, type RunState } from '../runs/run.ts';
import { streams } from '../streams.ts';
import { tryAppend } from '../try-append.ts';
import type { RunTrigger } from '../vocabulary.ts';

/** A reservation whose run was never requested may be voided after this long. Milliseconds. */
export const RESERVATION_LIFETIME = 60_000;

/** A run's claim on a key: a slot, a waiter's place, or a use. */
export interface KeyPlace {
  readonly run_id: string;
  readonly trigger: RunTrigger;
  /** The time since which the run has had it. */
  readonly since: string;
  /** For a slot: the attempt for which it is held. */
  readonly attempt?: number;
}

/** A run according to its stream, with the time of its last event; null for an empty stream. */
export interface SeenRun {
  readonly run: RunState;
  readonly lastAt: string | null;
}

export type Verdict =
  /** It is running, or may start at any time. */
  | 'active'
  /** The run has ended and no longer needs its place. A slot is only needed during the attempt. */
  | 'ended'
  /** It holds a slot and could have started, but has not for a whole lease. */
  | 'idle'
  /** It was never requested, and nothing in the log requires it. */
  | 'unrequested';

/**
 * Whether a run still needs its place. If a fire, a published event or a backfill caused the run, an empty stream only
 * means that the request is late. It will still be appended, so the run keeps the place.
 *
 * @param lease milliseconds in which a run that holds a concurrency key must start
 */
export function staleHolderVerdict(
  place: KeyPlace,
  kind: KeyKind,
  { run, lastAt }: SeenRun,
  now: Instant,
  lease: number,
): Verdict {
  if (run.state === 'none') {
    const isVoidable = place.trigger === 'manual';
    return isVoidable && now - fromIso(place.since) > RESERVATION_LIFETIME
      ? 'unrequested'
      : 'active';
  }
  if (hasEnded(run)) return 'ended';
  if (run.state === 'running' || kind !== 'concurrency') return 'active';
  if (!('request' in run)) return 'active';
  if (run.state === 'waiting') return releasesKey(run.waits) ? 'ended' : 'active';
  // No run waits before it is due. Its place was recorded before the failed attempt was known.
  if (place.attempt === undefined) return fromIso(run.run_at) > now ? 'ended' : 'active';
  // A run in back-off holds no slot; it takes one again for the next attempt.
  if (run.state === 'retrying' && place.attempt <= run.attempt) return 'ended';
  const last = Math.max(fromIso(place.since), lastAt === null ? 0 : fromIso(lastAt));
  return now - last > lease ? 'idle' : 'active';
}

const seenFold: Fold<SeenRun, RunEvent> = {
  initial: { run: runFold.initial, lastAt: null },
  evolve: ({ run }, event, at) => ({
    run: runFold.evolve(run, event, at),
    lastAt: at.metadata.occurredAt,
  }),
};

/**
 * Finds runs that have lost their claim to a key. The caller releases them with the key's revision expected, as read
 * before this check.
 *
 * If a run could still begin, this closes its stream first: with `Abandoned`, expecting an empty stream, or with
 * `RunInterrupted`, expecting the revision read. A process that is about to append the request or the start then fails
 * and must ask for the key again, so no run ever starts without its slot. After a crash between closing the stream and
 * releasing the key, the next check finds the place stale again.
 */
export class StaleHolderCheck {
  readonly #store: EventStore;
  readonly #context: KeyContext;
  readonly #lease: number;
  /** Runs whose streams this check has closed, with the time of their place. A later place is a new claim. */
  readonly #closed = new Map<string, string>();

  /** @param lease milliseconds in which a run that holds a concurrency key must start */
  constructor(store: EventStore, context: KeyContext, lease = 0) {
    this.#store = store;
    this.#context = context;
    this.#lease = lease;
  }

  /** The runs that are no longer entitled to their places. Reads each run's stream. */
  async findStale(key: KeyName, places: readonly KeyPlace[]): Promise<readonly string[]> {
    const dead: string[] = [];
    for (const place of places) if (await this.#isStale(key, place)) dead.push(place.run_id);
    return dead;
  }

  async #isStale(key: KeyName, place: KeyPlace): Promise<boolean> {
    const { run_id, since } = place;
    if (this.#closed.get(run_id) === since) return true;
    const stream = streams.run(run_id);
    const { state, revision } = await load(this.#store, stream, seenFold);
    const verdict = staleHolderVerdict(place, key.kind, state, this.#context.now, this.#lease);
    if (verdict === 'active' || verdict === 'ended') return verdict === 'ended';
    if (!(await this.#close(stream, verdict, key, revision))) return false;
    this.#closed.set(run_id, since);
    return true;
  }

  /** @returns false if another writer won the race, so that the place is not stale */
  async #close(
    stream: string,
    verdict: 'idle' | 'unrequested',
    { kind, owner, key }: KeyName,
    expected: number | 'none',
  ): Promise<boolean> {
    const context = { ...this.#context, commandId: newId(this.#context.now) };
    const event: RunEvent =
      verdict === 'unrequested'
        ? { type: 'Abandoned', data: { reservation: streams.key(kind, owner, key) } }
        : { type: 'RunInterrupted', data: { worker: context.source, cause: 'slot_expired' } };
    const events = toNewEvents(stream, [event], context);
    return (await tryAppend(this.#store, stream, events, expected)) !== null;
  }
}

/**
 * Releases a key from those candidates that have lost their claim to it.
 *
 * @param lease milliseconds in which a run that holds a concurrency key must start
 * @returns the released runs, with the key after it
 */
export function releaseStale(
  store: EventStore,
  name: KeyName,
  context: KeyContext,
  lease: number,
  candidates: (state: KeyState) => readonly KeyPlace[],
): Promise<KeyChanged<readonly string[]>> {
  const check = new StaleHolderCheck(store, context, lease);
  return changeKey(store, name, context, async (state) => {
    const stale = await check.findStale(name, candidates(state));
    return { events: releaseAll(state, stale).events, answer: stale };
  });
}
