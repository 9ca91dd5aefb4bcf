import { fromIso } from '../clock.ts';
import {
  EventStoreError,
  isConflict,
  type EventStore,
  type NewEvent,
  type StreamAppend,
} from '../event-store.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import { loadLast, toNewEvents, type CommandContext } from '../handle.ts';
import { newId } from '../ids.ts';
import { keyFold, unusedKey, type KeyName, type KeyState } from './key.ts';
import { streams } from '../streams.ts';

/** Races for a key that may be lost in a row. Each is lost to somebody who got what he wanted. */
const ATTEMPTS = 20;

/** Holders and waiters that the events of one append tell of, about: each event carries them all. */
const MOST_PLACES = 1000;

/** Who changes a key, when, and because of what; each change is a command of its own. */
export type KeyContext = Omit<CommandContext, 'commandId'>;

/** What is to happen to a key, and the answer to whoever wanted it. */
export interface KeyChange<T> {
  readonly events: readonly KeyEvent[];
  readonly answer: T;
}

export interface KeyChanged<T> {
  readonly answer: T;
  readonly state: KeyState;
  /** Of the last event; -1 for a key that was never used. */
  readonly revision: number;
}

/** A key as somebody knows it, or knew it a moment ago. */
export interface KnownKey {
  readonly state: KeyState;
  readonly revision: number;
}

/**
 * Decides what is to happen to a key.
 *
 * @param pending what is decided to be appended before it, at once
 */
export type Decide<T> = (
  state: KeyState,
  pending: readonly KeyEvent[],
) => KeyChange<T> | Promise<KeyChange<T>>;

/** A change that waits for its turn. */
interface Wish {
  readonly context: KeyContext;
  readonly decide: Decide<unknown>;
  readonly known: () => KnownKey | undefined;
  readonly done: (changed: KeyChanged<unknown>) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Changes of the same key by this process: while one append is under way, those that come are gathered for the next.
 * One after the other they would only make each other lose races.
 */
const queues = new WeakMap<EventStore, Map<string, Wish[]>>();

/**
 * Reads a key's last event, decides, and appends expecting that one. A lost race, or a lost answer, is followed by
 * reading and deciding again: every decision on a key is so made that it finds its own effect and adds nothing.
 * Changes that this process makes at the same time are decided one after the other, and go to the log as one append.
 *
 * @param decide may look at other streams: what it saw of them is newer than the state it decides on, and
 *   whoever changes his claim on the key in the meantime makes the append a lost race
 * @param known the key as far as the caller follows it: what is decided on it saves the reading. Where it is of the past, the
 *   append is a lost race; and that there is nothing to do is only ever decided on what was read
 * @returns the answer, with the key as it is after all that was appended at once
 * @throws EventStoreError `CONFLICT` when every race was lost, and all that the log throws
 */
export function changeKey<T>(
  store: EventStore,
  name: KeyName,
  context: KeyContext,
  decide: Decide<T>,
  known: () => KnownKey | undefined = () => undefined,
): Promise<KeyChanged<T>> {
  const stream = streams.key(name.kind, name.owner, name.key);
  const ofStore = queues.get(store) ?? new Map<string, Wish[]>();
  queues.set(store, ofStore);
  return new Promise<KeyChanged<T>>((resolve, failed) => {
    // Each wish is answered by what its own `decide` gave.
    const done = resolve as Wish['done'];
    const wish: Wish = { context, decide, known, done, failed };
    const queue = ofStore.get(stream);
    if (queue !== undefined) {
      queue.push(wish);
      return;
    }
    ofStore.set(stream, [wish]);
    void serve(store, stream, name, ofStore);
  });
}

/** A change of a key that its maker appends himself, in order with other appends. */
export interface ChangeInOrder {
  readonly append: StreamAppend;
  /** The key after it. */
  readonly state: KeyState;
  /** To be called once, when it is over: other changes of the key by this process wait for that. */
  over(): void;
}

/**
 * Decides a change of a key, for the caller to append behind what it depends on, in one call of the log. Nothing is read and
 * nothing repeated: where the key was changed elsewhere in the meantime, that append is refused, and {@link changeKey} is
 * left.
 *
 * @returns null where there is nothing to change, or this process is changing the key just now
 */
export function changeInOrder(
  store: EventStore,
  name: KeyName,
  context: KeyContext,
  known: KnownKey,
  decide: (state: KeyState) => readonly KeyEvent[],
): ChangeInOrder | null {
  const stream = streams.key(name.kind, name.owner, name.key);
  const ofStore = queues.get(store) ?? new Map<string, Wish[]>();
  queues.set(store, ofStore);
  if (ofStore.has(stream) || known.revision < 0) return null;
  const events = decide(known.state);
  const last = events.at(-1);
  if (last === undefined) return null;
  ofStore.set(stream, []);
  const { run_id: _about, ...state } = last.data;
  return {
    append: {
      stream,
      events: newEventsFor(stream, events, last, context),
      expected: known.revision,
    },
    state,
    over: () => void serve(store, stream, name, ofStore),
  };
}

/** Fulfils the wishes for one key until there are none. Never rejects. */
async function serve(
  store: EventStore,
  stream: string,
  name: KeyName,
  ofStore: Map<string, Wish[]>,
): Promise<void> {
  for (;;) {
    const wishes = ofStore.get(stream) ?? [];
    if (wishes.length === 0) break;
    ofStore.set(stream, []);
    let left: readonly Wish[] = wishes;
    while (left.length > 0) left = await fulfil(store, stream, name, left);
  }
  ofStore.delete(stream);
}

/** @returns the wishes that did not fit into the append */
async function fulfil(
  store: EventStore,
  stream: string,
  name: KeyName,
  wishes: readonly Wish[],
): Promise<readonly Wish[]> {
  let decided: readonly Decided[] = [];
  let known = latestOf(wishes);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const start = known ?? (await read(store, stream, name));
      decided = await decideAll(start.state, wishes);
      const events = newEventsOf(stream, decided);
      if (events.length === 0 && known !== undefined) {
        known = undefined;
        continue;
      }
      const expected = start.revision < 0 ? 'none' : start.revision;
      const { revision } =
        events.length === 0 ? start : await store.append(stream, events, expected);
      const after = { state: decided.at(-1)?.state ?? start.state, revision };
      for (const { wish, outcome } of decided) {
        if ('error' in outcome) wish.failed(outcome.error);
        else wish.done({ answer: outcome.answer, ...after });
      }
      return wishes.slice(decided.length);
    } catch (error) {
      known = undefined;
      if (isPassing(error) && attempt < ATTEMPTS) continue;
      const asked = decided.length === 0 ? wishes : wishes.slice(0, decided.length);
      for (const wish of asked) wish.failed(error);
      return wishes.slice(asked.length);
    }
  }
}

function latestOf(wishes: readonly Wish[]): KnownKey | undefined {
  let latest: KnownKey | undefined;
  for (const wish of wishes) {
    const known = wish.known();
    if (known !== undefined && known.revision > (latest?.revision ?? -1)) latest = known;
  }
  return latest;
}

async function read(store: EventStore, stream: string, name: KeyName): Promise<KnownKey> {
  const { state, revision } = await loadLast(store, stream, keyFold);
  return { state: state ?? unusedKey(name), revision: revision === 'none' ? -1 : revision };
}

/** What a wish came to. */
interface Decided {
  readonly wish: Wish;
  readonly events: readonly KeyEvent[];
  readonly outcome: { readonly answer: unknown } | { readonly error: unknown };
  /** The key after it. */
  readonly state: KeyState;
}

/** Decides wishes one on the other's result, as many as one append may hold. */
async function decideAll(start: KeyState, wishes: readonly Wish[]): Promise<readonly Decided[]> {
  const decided: Decided[] = [];
  const pending: KeyEvent[] = [];
  let state = start;
  let places = 0;
  for (const wish of wishes) {
    try {
      const { events, answer } = await wish.decide(state, pending);
      for (const { type, data } of events) {
        const { run_id: _about, ...after } = data;
        state = after;
        if (type !== 'KeyWaited') places += data.holders.length + data.waiters.length;
      }
      pending.push(...events);
      decided.push({ wish, events, outcome: { answer }, state });
    } catch (error) {
      decided.push({ wish, events: [], outcome: { error }, state });
    }
    if (places >= MOST_PLACES) break;
  }
  return decided;
}

function newEventsOf(stream: string, decided: readonly Decided[]): readonly NewEvent[] {
  const last = decided.flatMap(({ events }) => events).at(-1);
  return decided.flatMap(({ wish: { context }, events }) =>
    newEventsFor(stream, events, last, context),
  );
}

/** Of those who only come to stand in line, what follows at once says as much: each event carries the whole line. */
function newEventsFor(
  stream: string,
  events: readonly KeyEvent[],
  last: KeyEvent | undefined,
  context: KeyContext,
): readonly NewEvent[] {
  return toNewEvents(
    stream,
    events.filter((event) => event === last || event.type !== 'KeyWaited'),
    // Ids of its own for each try: what is decided again need not be the same.
    { ...context, commandId: newId(context.now) },
  );
}

/** A key as its last event says; null for one that was never used. */
export async function readKey(store: EventStore, name: KeyName): Promise<KeyState | null> {
  const stream = streams.key(name.kind, name.owner, name.key);
  return (await loadLast(store, stream, keyFold)).state;
}

/** What `GET /concurrency/{key}` shows. */
export interface Concurrency {
  readonly key: string;
  /** The smallest that a run in it goes by; null while nobody is. */
  readonly limit: number | null;
  readonly holders: readonly { run_id: string; task_id: string; since: string }[];
  /** In the order in which they go; the first {@link LONGEST_LINE} of them. `since`: when it came to wait. */
  readonly waiters: readonly { run_id: string; task_id: string; priority: number; since: string }[];
}

/** Who holds a concurrency key of an agent's tasks and who waits for it: from the key's own stream alone. */
export async function concurrencyOf(
  store: EventStore,
  owner: string,
  key: string,
): Promise<Concurrency> {
  const { holders, waiters } =
    (await readKey(store, { kind: 'concurrency', owner, key })) ??
    unusedKey({ kind: 'concurrency', owner, key });
  const limits = [...holders, ...waiters].map(({ limit }) => limit);
  return {
    key,
    limit: limits.length === 0 ? null : Math.min(...limits),
    holders: [...holders]
      .sort((a, b) => fromIso(a.since) - fromIso(b.since))
      .map(({ run_id, task_id, since }) => ({ run_id, task_id, since })),
    waiters: waiters.map(({ run_id, task_id, priority, waiting_since: since }) => ({
      run_id,
      task_id,
      priority,
      since,
    })),
  };
}

function isPassing(error: unknown): boolean {
  if (isConflict(error)) return true;
  // The answer was lost: what the stream says now tells whether the append happened.
  const isLost = error instanceof EventStoreError && error.code === 'OUTCOME_UNKNOWN';
  return isLost && !error.repeated;
}
