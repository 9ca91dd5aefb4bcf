import { fromIso } from './clock.ts';
import { EventStoreError, isConflict, type EventStore } from './event-store.ts';
import type { KeyEvent } from './events/catalogue.ts';
import { loadLast, toNewEvents, type CommandContext } from './handle.ts';
import { newId } from './ids.ts';
import { keyFold, unusedKey, type KeyName, type KeyState } from './key.ts';
import { streams } from './streams.ts';

/** Races for a key that may be lost in a row. Each is lost to somebody who got what he wanted. */
const ATTEMPTS = 20;

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

/** Changes of the same key by this process, one after the other: they would only make each other lose races. */
const queues = new WeakMap<EventStore, Map<string, Promise<unknown>>>();

/**
 * Reads a key's last event, decides, and appends expecting that one. A lost race, or a lost answer, is followed by
 * reading and deciding again: every decision on a key is so made that it finds its own effect and adds nothing.
 *
 * @param decide may look at other streams: what it saw of them is newer than the state it decides on, and
 *   whoever changes his claim on the key in the meantime makes the append a lost race
 * @throws EventStoreError `CONFLICT` when every race was lost, and all that the log throws
 */
export function changeKey<T>(
  store: EventStore,
  name: KeyName,
  context: KeyContext,
  decide: (state: KeyState) => KeyChange<T> | Promise<KeyChange<T>>,
): Promise<KeyChanged<T>> {
  const stream = streams.key(name.kind, name.owner, name.key);
  return inTurn(store, stream, () => change(store, stream, name, context, decide));
}

async function change<T>(
  store: EventStore,
  stream: string,
  name: KeyName,
  context: KeyContext,
  decide: (state: KeyState) => KeyChange<T> | Promise<KeyChange<T>>,
): Promise<KeyChanged<T>> {
  for (let attempt = 1; ; attempt += 1) {
    const loaded = await loadLast(store, stream, keyFold);
    const state = loaded.state ?? unusedKey(name);
    const { events, answer } = await decide(state);
    const last = events.at(-1);
    if (last === undefined) {
      return { answer, state, revision: loaded.revision === 'none' ? -1 : loaded.revision };
    }
    // Ids of its own for each try: what is decided again need not be the same.
    const newEvents = toNewEvents(stream, events, { ...context, commandId: newId(context.now) });
    try {
      const { revision } = await store.append(stream, newEvents, loaded.revision);
      const { run_id: _about, ...after } = last.data;
      return { answer, state: after, revision };
    } catch (error) {
      if (!isPassing(error) || attempt >= ATTEMPTS) throw error;
    }
  }
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
  // The answer was lost: what the stream says now tells whether the append happened.
  return (
    isConflict(error) || (error instanceof EventStoreError && error.code === 'OUTCOME_UNKNOWN')
  );
}

async function inTurn<T>(store: EventStore, stream: string, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(store) ?? new Map<string, Promise<unknown>>();
  queues.set(store, queue);
  const before = queue.get(stream) ?? Promise.resolve();
  const mine = before.then(work, work);
  queue.set(stream, mine);
  try {
    return await mine;
  } finally {
    if (queue.get(stream) === mine) queue.delete(stream);
  }
}
