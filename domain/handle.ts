import type { Instant } from './clock.ts';
import { toIso } from './clock.ts';
import { Refusal } from './errors.ts';
import {
  EventStoreError,
  isConflict,
  type AppendResult,
  type EventStore,
  type NewEvent,
  type Position,
  type RecordedEvent,
} from './event-store.ts';
import { catalogue, type DomainEvent } from './events/catalogue.ts';
import type { Metadata } from './events/metadata.ts';
import { eventId } from './ids.ts';

/** Who asks for something, when, and because of what. Stands in the metadata of every event that results. */
export interface CommandContext {
  /** The same for a repetition of the same command; the ids of its events come from it. */
  readonly commandId: string;
  /** The agent's id, or `service`. */
  readonly actor: string;
  readonly source: string;
  readonly correlationId: string;
  readonly causationId?: string | undefined;
  readonly reason?: string | undefined;
  readonly traceparent?: string | undefined;
  /** The time that all semantics use. */
  readonly now: Instant;
}

/** How a stream's events fold into a state. */
export interface Fold<S, E extends DomainEvent> {
  readonly initial: S;
  /** Pure. Never throws for events that stand in the log. */
  evolve(state: S, event: E, at: EventPlace): S;
}

/** Where and when an event stands. */
export interface EventPlace {
  readonly revision: number;
  readonly metadata: Metadata;
}

/** A stream's state as it was read. */
export interface Loaded<S> {
  readonly state: S;
  /** Revision of the last event; `none` for a stream without events. */
  readonly revision: number | 'none';
  /** Position of the last event. */
  readonly position: Position | null;
}

export interface Handled<S> extends Loaded<S> {
  /** What was appended now (or before, by the same command); empty where there was nothing to do. */
  readonly events: readonly DomainEvent[];
}

const PAGE = 1000;
/**
 * Attempts of a command. Each race is lost to somebody who got what he wanted; of commands on one stream by four
 * processes, one in ten loses six.
 */
const MOST_RACES = 20;
/** The same where answers are lost, and the log has not waited for long. */
const MOST_LOST_ANSWERS = 6;

/** Events as they go to the log: ids from the command, metadata from its context. */
export function toNewEvents(
  stream: string,
  events: readonly DomainEvent[],
  context: CommandContext,
): readonly NewEvent[] {
  const { commandId, actor, source, correlationId, causationId, reason, traceparent } = context;
  const occurredAt = toIso(context.now);
  // Built up and not spread or mapped: every event that is written comes through here, and an array that `map` has made
  // is of another form before it is compiled than after.
  const made: NewEvent[] = [];
  for (const [index, event] of events.entries()) {
    const metadata: Writable<Metadata> = {
      commandId,
      $correlationId: correlationId,
      actor,
      source,
      schemaVersion: String(catalogue[event.type].version),
      occurredAt,
    };
    if (causationId !== undefined) metadata.$causationId = causationId;
    if (reason !== undefined) metadata.reason = reason;
    if (traceparent !== undefined) metadata.traceparent = traceparent;
    const { type, data } = event;
    made.push({ type, data, id: eventId(commandId, stream, index), metadata } as NewEvent);
  }
  return made;
}

/** Sets when events occur that were made ahead and have not been handed on yet. */
export function occurAt(events: readonly NewEvent[], now: Instant): void {
  const occurredAt = toIso(now);
  for (const { metadata } of events) (metadata as Writable<Metadata>).occurredAt = occurredAt;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Folds a stream from its first event. */
export async function load<S, E extends DomainEvent>(
  store: EventStore,
  stream: string,
  fold: Fold<S, E>,
): Promise<Loaded<S>> {
  const { loaded } = await loadWatching(store, stream, fold, null);
  return loaded;
}

/** Folds a stream's last event alone, for streams whose every event carries the resulting state. */
export async function loadLast<S, E extends DomainEvent>(
  store: EventStore,
  stream: string,
  fold: Fold<S, E>,
): Promise<Loaded<S>> {
  const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
  if (!last) return { state: fold.initial, revision: 'none', position: null };
  const state = fold.evolve(fold.initial, last as unknown as E, last);
  return { state, revision: last.revision, position: last.position };
}

/**
 * Load, decide, append. The decision is taken again on what is there after a lost race, a few times,
 * unless the caller gave the revision that it saw.
 *
 * A command that was carried out before (the stream has events of its id) is not decided again: its
 * events are the answer. So a repetition after a lost answer, or after a crash, is the same command.
 *
 * @param options.admit refuses those who may not, or what does not exist: before the revision is looked at
 * @param options.decide from the state to the events; none means that there is nothing to do
 * @param options.expectedRevision what the caller saw (`If-Match`)
 * @param options.isNew the stream's name was made just now: it is not read first. One that has events all the same is
 *   a race that was lost, after which it is read
 * @throws Refusal what `decide` throws, and `REVISION_MISMATCH`
 * @throws EventStoreError `CONFLICT` when the race was lost each time, and all that the log throws
 */
export async function handle<S, E extends DomainEvent>(options: {
  readonly store: EventStore;
  readonly stream: string;
  readonly fold: Fold<S, E>;
  readonly admit?: (state: S) => void;
  readonly decide: (state: S, loaded: Loaded<S>) => readonly E[];
  readonly context: CommandContext;
  readonly expectedRevision?: SeenRevision | undefined;
  readonly isNew?: boolean;
}): Promise<Handled<S>> {
  const { store, stream } = options;
  const first = await attempt(options);
  if (!(first instanceof EventStoreError)) return first;
  if (first.repeated) return found(options, first);
  return inLine(store, stream, async () => {
    for (let n = 2; ; n += 1) {
      const handled = await attempt({ ...options, isNew: false });
      if (!(handled instanceof EventStoreError)) return handled;
      if (handled.repeated) return found(options, handled);
      if (n >= (isConflict(handled) ? MOST_RACES : MOST_LOST_ANSWERS)) throw handled;
    }
  });
}

/**
 * What a command has come to whose append the log has repeated for as long as it lets anybody wait: its events may
 * stand there all the same. It is not appended again, which would take as long once more.
 * @throws EventStoreError the fault, where they don't
 */
async function found<S, E extends DomainEvent>(
  { store, stream, fold, context }: Parameters<typeof handle<S, E>>[0],
  fault: EventStoreError,
): Promise<Handled<S>> {
  const { loaded, own } = await loadWatching(store, stream, fold, context.commandId);
  if (own.length === 0) throw fault;
  return { ...loaded, events: own };
}

/** Loads, decides and appends once. @returns the error when it may be done again */
async function attempt<S, E extends DomainEvent>({
  store,
  stream,
  fold,
  admit,
  decide,
  context,
  expectedRevision,
  isNew,
}: Parameters<typeof handle<S, E>>[0]): Promise<Handled<S> | EventStoreError> {
  const { loaded, own } = isNew
    ? { loaded: { state: fold.initial, revision: 'none', position: null } as const, own: [] }
    : await loadWatching(store, stream, fold, context.commandId);
  if (own.length > 0) return { ...loaded, events: own };
  admit?.(loaded.state);
  if (expectedRevision !== undefined && !isSeen(expectedRevision, loaded.revision)) {
    throw revisionMismatch(stream, expectedRevision, loaded.revision);
  }
  const events = decide(loaded.state, loaded);
  if (events.length === 0) return { ...loaded, events };
  const written = toNewEvents(stream, events, context);
  try {
    const result = await store.append(stream, written, loaded.revision);
    return { ...advance(loaded, written, fold, result), events };
  } catch (error) {
    if (isConflict(error)) return error;
    // The answer was lost: what the stream says now tells whether the append happened.
    if (error instanceof EventStoreError && error.code === 'OUTCOME_UNKNOWN') return error;
    throw error;
  }
}

/** By store and stream: the last of those who try again. */
const lines = new WeakMap<EventStore, Map<string, Promise<EventStoreError | null>>>();

/**
 * Those who have lost a race for a stream try again one after the other: they don't lose it to each other again. Where
 * one has waited for the log in vain for as long as it lets anybody wait, so have those behind: each would do so in turn.
 */
function inLine<T>(store: EventStore, stream: string, work: () => Promise<T>): Promise<T> {
  const line = lines.get(store) ?? new Map<string, Promise<EventStoreError | null>>();
  lines.set(store, line);
  const before = line.get(stream) ?? Promise.resolve(null);
  const result = before.then((vain) => {
    if (vain !== null) throw vain;
    return work();
  });
  const settled: Promise<EventStoreError | null> = result.then(
    () => null,
    (error: unknown) => (hasWaited(error) ? error : null),
  );
  line.set(stream, settled);
  void settled.then(() => {
    if (line.get(stream) === settled) line.delete(stream);
  });
  return result;
}

function hasWaited(error: unknown): error is EventStoreError {
  return error instanceof EventStoreError && error.repeated;
}

async function loadWatching<S, E extends DomainEvent>(
  store: EventStore,
  stream: string,
  fold: Fold<S, E>,
  commandId: string | null,
): Promise<{ readonly loaded: Loaded<S>; readonly own: readonly RecordedEvent[] }> {
  let state = fold.initial;
  let last: RecordedEvent | undefined;
  const own: RecordedEvent[] = [];
  for (;;) {
    const page = await store.readStream(stream, {
      from: last ? last.revision + 1 : 0,
      limit: PAGE,
    });
    for (const event of page) {
      // A stream holds the events of its kind alone; nothing else is ever appended to it.
      state = fold.evolve(state, event as unknown as E, event);
      if (commandId !== null && event.metadata.commandId === commandId) own.push(event);
    }
    last = page.at(-1) ?? last;
    if (page.length < PAGE) break;
  }
  const loaded = {
    state,
    revision: last?.revision ?? ('none' as const),
    position: last?.position ?? null,
  };
  return { loaded, own };
}

function advance<S, E extends DomainEvent>(
  loaded: Loaded<S>,
  events: readonly NewEvent[],
  fold: Fold<S, E>,
  result: AppendResult,
): Loaded<S> {
  let { state } = loaded;
  let revision = result.revision - events.length;
  for (const event of events) {
    revision += 1;
    state = fold.evolve(state, event as unknown as E, { revision, metadata: event.metadata });
  }
  return { state, revision: result.revision, position: result.position };
}

/** The revision of a stream that a caller saw, or several any of which will do (`If-Match`). None: it never matches. */
export type SeenRevision = number | readonly number[];

export function isSeen(seen: SeenRevision, revision: number | 'none'): boolean {
  return typeof seen === 'number'
    ? seen === revision
    : revision !== 'none' && seen.includes(revision);
}

/** Refuses a command whose caller saw another revision of the stream (`If-Match`). */
export function revisionMismatch(
  stream: string,
  expected: SeenRevision,
  actual: number | 'none',
): Refusal {
  const revisions = typeof expected === 'number' ? [expected] : expected;
  const named = revisions.length === 0 ? 'the one that the entity tag names' : revisions.join(', ');
  const message = `${stream} is at revision ${actual}, not ${named}`;
  return new Refusal('REVISION_MISMATCH', message, { expected, actual });
}
