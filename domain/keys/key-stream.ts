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
import { keyFold, stateAfter, unusedKey, type KeyName, type KeyState } from './key.ts';
import { streams } from '../streams.ts';

/** The most races for a key that may be lost in a row. Each lost race means that another writer made progress. */
const MAX_ATTEMPTS = 20;

/** Roughly the most holders and waiters in the events of one append. Each event carries all of them. */
const MAX_PLACES_PER_APPEND = 1000;

/** The context of a change; each change is a separate command. */
export type KeyContext = Omit<CommandContext, 'commandId'>;

/** The events of a change, and the answer to its caller. */
export interface KeyChange<T> {
  readonly events: readonly KeyEvent[];
  readonly answer: T;
}

/** A key as a process knows it; it may be out of date. */
export interface KnownKey {
  readonly state: KeyState;
  /** The revision of the last event; -1 for a key that was never used. */
  readonly revision: number;
}

export interface KeyChanged<T> extends KnownKey {
  readonly answer: T;
}

/**
 * Decides on a change of a key.
 *
 * @param pending events decided before it that go into the same append
 */
export type Decide<T> = (
  state: KeyState,
  pending: readonly KeyEvent[],
) => KeyChange<T> | Promise<KeyChange<T>>;

interface QueuedChange {
  readonly context: KeyContext;
  readonly decide: Decide<unknown>;
  readonly known: () => KnownKey | undefined;
  readonly done: (changed: KeyChanged<unknown>) => void;
  readonly failed: (error: unknown) => void;
}

/** Changes by stream: those that arrive while an append is running go into the next one, and do not race each other. */
type ChangeQueues = Map<string, QueuedChange[]>;

const queuesOfStores = new WeakMap<EventStore, ChangeQueues>();

function queuesOf(store: EventStore): ChangeQueues {
  const queues = queuesOfStores.get(store) ?? new Map<string, QueuedChange[]>();
  queuesOfStores.set(store, queues);
  return queues;
}

/**
 * Reads a key's last event, decides, and appends with that revision expected. After a lost race or a lost response, it
 * reads and decides again. Each decision recognises its own effect. Concurrent changes by this process are decided one
 * after the other and go into one append.
 *
 * @param decide may read other streams. Their content is newer than the state, and any change of the claim on the key
 *   in the meantime makes the append lose the race
 * @param known the key as the caller follows it, which saves a read. If it is out of date, the append loses the race.
 *   The decision to do nothing is only made on a state that was read
 * @returns the answer, with the key after all events that were appended together
 * @throws EventStoreError `CONFLICT` when every race was lost, and all errors of the log
 */
export function changeKey<T>(
  store: EventStore,
  name: KeyName,
  context: KeyContext,
  decide: Decide<T>,
  known: () => KnownKey | undefined = () => undefined,
): Promise<KeyChanged<T>> {
  const queues = queuesOf(store);
  const stream = streams.key(name.kind, name.owner, name.key);
  return new Promise<KeyChanged<T>>((resolve, failed) => {
    // Each change is answered with the value that its own `decide` returned.
    const done = resolve as QueuedChange['done'];
    const change: QueuedChange = { context, decide, known, done, failed };
    const queue = queues.get(stream);
    if (queue !== undefined) {
      queue.push(change);
      return;
    }
    queues.set(stream, [change]);
    void drain(store, stream, name, queues);
  });
}

/** A change that its caller appends together with other appends. */
export interface PreparedKeyChange {
  readonly append: StreamAppend;
  /** The key after the change. */
  readonly state: KeyState;
  /**
   * Must be called once the append has succeeded or failed, because this process's other changes of the key wait for
   * it.
   */
  finish(): void;
}

/**
 * Decides on a change that the caller appends after an append on which it depends, in one call of the log. It reads
 * nothing and does not retry. If the key was changed elsewhere, the append is refused, and the caller uses {@link
 * changeKey}.
 *
 * @returns null if there is nothing to change, or this process is changing the key right now
 */
export function prepareKeyChange(
  store: EventStore,
  name: KeyName,
  context: KeyContext,
  known: KnownKey,
  decide: (state: KeyState) => readonly KeyEvent[],
): PreparedKeyChange | null {
  const queues = queuesOf(store);
  const stream = streams.key(name.kind, name.owner, name.key);
  if (queues.has(stream) || known.revision < 0) return null;
  const events = decide(known.state);
  const last = events.at(-1);
  if (last === undefined) return null;
  queues.set(stream, []);
  const appended = newEventsFor(stream, events, last, context);
  return {
    append: { stream, events: appended, expected: known.revision },
    state: stateAfter(last),
    finish: () => void drain(store, stream, name, queues),
  };
}

/** Carries out the queued changes of a key until there are none. Never rejects. */
async function drain(
  store: EventStore,
  stream: string,
  name: KeyName,
  queues: ChangeQueues,
): Promise<void> {
  for (;;) {
    let left: readonly QueuedChange[] = queues.get(stream) ?? [];
    if (left.length === 0) break;
    queues.set(stream, []);
    while (left.length > 0) left = await appendBatch(store, stream, name, left);
  }
  queues.delete(stream);
}

/** @returns the changes that did not fit into the append */
async function appendBatch(
  store: EventStore,
  stream: string,
  name: KeyName,
  changes: readonly QueuedChange[],
): Promise<readonly QueuedChange[]> {
  let decided: readonly DecidedChange[] = [];
  let known = latestOf(changes);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const start = known ?? (await read(store, stream, name));
      decided = await decideAll(start.state, changes);
      const events = newEventsOf(stream, decided);
      if (events.length === 0 && known !== undefined) {
        known = undefined;
        continue;
      }
      const expected = start.revision < 0 ? 'none' : start.revision;
      const { revision } =
        events.length === 0 ? start : await store.append(stream, events, expected);
      const after = { state: decided.at(-1)?.state ?? start.state, revision };
      for (const { change, outcome } of decided) {
        if ('error' in outcome) change.failed(outcome.error);
        else change.done({ answer: outcome.answer, ...after });
      }
      return changes.slice(decided.length);
    } catch (error) {
      known = undefined;
      if (isRetryable(error) && attempt < MAX_ATTEMPTS) continue;
      const tried = decided.length === 0 ? changes : changes.slice(0, decided.length);
      for (const change of tried) change.failed(error);
      return changes.slice(tried.length);
    }
  }
}

function latestOf(changes: readonly QueuedChange[]): KnownKey | undefined {
  let latest: KnownKey | undefined;
  for (const change of changes) {
    const known = change.known();
    if (known !== undefined && known.revision > (latest?.revision ?? -1)) latest = known;
  }
  return latest;
}

async function read(store: EventStore, stream: string, name: KeyName): Promise<KnownKey> {
  const { state, revision } = await loadLast(store, stream, keyFold);
  return { state: state ?? unusedKey(name), revision: revision === 'none' ? -1 : revision };
}

interface DecidedChange {
  readonly change: QueuedChange;
  readonly events: readonly KeyEvent[];
  readonly outcome: { readonly answer: unknown } | { readonly error: unknown };
  /** The key after the change. */
  readonly state: KeyState;
}

/** Decides each change on the result of the one before, as many as fit into one append. */
async function decideAll(
  start: KeyState,
  changes: readonly QueuedChange[],
): Promise<readonly DecidedChange[]> {
  const decided: DecidedChange[] = [];
  const pending: KeyEvent[] = [];
  let state = start;
  let places = 0;
  for (const change of changes) {
    try {
      const { events, answer } = await change.decide(state, pending);
      for (const event of events) {
        state = stateAfter(event);
        if (event.type !== 'KeyWaited') places += state.holders.length + state.waiters.length;
      }
      pending.push(...events);
      decided.push({ change, events, outcome: { answer }, state });
    } catch (error) {
      decided.push({ change, events: [], outcome: { error }, state });
    }
    if (places >= MAX_PLACES_PER_APPEND) break;
  }
  return decided;
}

function newEventsOf(stream: string, decided: readonly DecidedChange[]): readonly NewEvent[] {
  const last = decided.flatMap(({ events }) => events).at(-1);
  return decided.flatMap(({ change: { context }, events }) =>
    newEventsFor(stream, events, last, context),
  );
}

/** Omits `KeyWaited` events that another event follows at once: each event carries all waiters. */
function newEventsFor(
  stream: string,
  events: readonly KeyEvent[],
  last: KeyEvent | undefined,
  context: KeyContext,
): readonly NewEvent[] {
  return toNewEvents(
    stream,
    events.filter((event) => event === last || event.type !== 'KeyWaited'),
    // New ids for each attempt, because the next decision may differ.
    { ...context, commandId: newId(context.now) },
  );
}

/** A key according to its last event; null for a key that was never used. */
export async function readKey(store: EventStore, name: KeyName): Promise<KeyState | null> {
  const stream = streams.key(name.kind, name.owner, name.key);
  return (await loadLast(store, stream, keyFold)).state;
}

/** The part of a key that `GET /concurrency/{key}` shows. */
export interface Concurrency {
  readonly key: string;
  /** The smallest limit among its runs; null while it has no runs. */
  readonly limit: number | null;
  readonly holders: readonly { run_id: string; task_id: string; since: string }[];
  /** The first {@link MAX_WAITERS} in order. `since`: when the run began to wait. */
  readonly waiters: readonly { run_id: string; task_id: string; priority: number; since: string }[];
}

/** The holders and waiters of a concurrency key of an agent's tasks, from the key's own stream alone. */
export async function concurrencyOf(
  store: EventStore,
  owner: string,
  key: string,
): Promise<Concurrency> {
  const name: KeyName = { kind: 'concurrency', owner, key };
  const { holders, waiters } = (await readKey(store, name)) ?? unusedKey(name);
  const limits = [...holders, ...waiters].map(({ limit }) => limit);
  return {
    key,
    limit: limits.length === 0 ? null : Math.min(...limits),
    holders: [...holders]
      .sort((a, b) => fromIso(a.since) - fromIso(b.since))
      .map(({ run_id, task_id, since }) => ({ run_id, task_id, since })),
    waiters: waiters.map(({ run_id, task_id, priority, waiting_since: since }) => {
      return { run_id, task_id, priority, since };
    }),
  };
}

function isRetryable(error: unknown): boolean {
  if (isConflict(error)) return true;
  // The response was lost. The stream shows whether the append happened.
  const isLost = error instanceof EventStoreError && error.code === 'OUTCOME_UNKNOWN';
  return isLost && !error.repeated;
}
