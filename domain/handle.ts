import { toIso, type Instant } from './clock.ts';
import { RefusalError } from './errors.ts';
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
import { DEFAULT_NAMESPACE } from './namespaces/namespace.ts';

/** The actor of a command, with its time and reason: the metadata of every resulting event. */
export interface CommandContext {
  /** The command's id, which is the same when the command is repeated. The ids of its events derive from it. */
  readonly commandId: string;
  /** The agent's id, or `service`. */
  readonly actor: string;
  readonly source: string;
  readonly correlationId: string;
  readonly causationId?: string | undefined;
  readonly reason?: string | undefined;
  readonly traceparent?: string | undefined;
  /** The depth of the chain of runs, each causing the next, that led to this command. Default: 0. */
  readonly depth?: number | undefined;
  /** The version of the tz database that the decision was based on, if it matters. */
  readonly tzVersion?: string | undefined;
  /** The actor's namespace. The changed record may be in another one. Default: `default`. */
  readonly namespace?: string | undefined;
  /** The time that all semantics use. */
  readonly now: Instant;
}

/** How a stream's events fold into a state. */
export interface Fold<S, E extends DomainEvent> {
  readonly initial: S;
  /** Pure. Never throws for events of the log. */
  evolve(state: S, event: E, at: EventPlace): S;
  /** The namespace of the stream; undefined before its first event. Left out if such streams belong to no namespace. */
  readonly namespaceOf?: (state: S) => string | undefined;
}

/** The place of an event in its stream, and its metadata. */
export interface EventPlace {
  readonly revision: number;
  readonly metadata: Metadata;
}

/** The state of a stream. */
export interface Loaded<S> {
  readonly state: S;
  /** Revision of the last event; `none` for a stream without events. */
  readonly revision: number | 'none';
  /** Position of the last event. */
  readonly position: Position | null;
}

export interface Handled<S> extends Loaded<S> {
  /** The events that this command has appended, now or earlier; empty if there was nothing to do. */
  readonly events: readonly DomainEvent[];
}

const PAGE = 1000;
/** The most attempts of a command that loses races. With four processes on one stream, one command in ten loses six. */
const MAX_RACES = 20;
/** Attempts of a command whose responses are lost soon after each append. */
const MAX_LOST_ANSWERS = 6;

/**
 * Events for the log: ids from the command, metadata from its context. Written as a loop, because it executes for every
 * written event.
 */
export function toNewEvents(
  stream: string,
  events: readonly DomainEvent[],
  context: CommandContext,
): readonly NewEvent[] {
  const { commandId, actor, source, correlationId, causationId, reason, traceparent } = context;
  const { depth = 0, tzVersion, namespace = DEFAULT_NAMESPACE } = context;
  const occurredAt = toIso(context.now);
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
    if (depth > 0) metadata.depth = String(depth);
    if (namespace !== DEFAULT_NAMESPACE) metadata.namespace = namespace;
    if (tzVersion !== undefined) metadata.tzVersion = tzVersion;
    const { type, data } = event;
    made.push({ type, data, id: eventId(commandId, stream, index), metadata } as NewEvent);
  }
  return made;
}

/** Sets the time of events that were created ahead of their append. */
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
  return (await loadWithOwn(store, stream, fold, null)).loaded;
}

/** Folds only the last event of a stream, for streams whose events carry the resulting state. */
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
 * Loads, decides, appends. After a lost race it decides again on the new state, up to a limit, unless the caller gave
 * the revision that it saw. A command that was carried out before (the stream has events with its id) is not decided
 * again. It returns those events, also after a lost response or a crash.
 *
 * @param options.admit throws if the caller may not do this, or the object does not exist. Called before the revision
 *   check
 * @param options.decide from the state to the events; none: there is nothing to do
 * @param options.expectedRevision the revision that the caller saw (`If-Match`)
 * @param options.isNew the stream's name is fresh: it is not read first. Events found there are a lost race
 * @throws RefusalError what `admit` and `decide` throw, and `REVISION_MISMATCH`
 * @throws EventStoreError `CONFLICT` when every race was lost, and all other errors of the log
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
  return afterOtherRetries(store, stream, async () => {
    for (let n = 2; ; n += 1) {
      const handled = await attempt({ ...options, isNew: false });
      if (!(handled instanceof EventStoreError)) return handled;
      if (n >= (isConflict(handled) ? MAX_RACES : MAX_LOST_ANSWERS)) throw handled;
    }
  });
}

/**
 * Looks for the command's events after the log itself repeated the append for its longest waiting time. Appending once
 * more would take as long again.
 * @throws EventStoreError the given error, if the stream does not have them
 */
async function findOwn<S, E extends DomainEvent>(
  { store, stream, fold, context }: Parameters<typeof handle<S, E>>[0],
  error: EventStoreError,
): Promise<Handled<S>> {
  const { loaded, own } = await loadWithOwn(store, stream, fold, context.commandId);
  if (own.length === 0) throw error;
  return { ...loaded, events: own };
}

/** Loads, decides and appends once. @returns an error after which it may be tried again */
async function attempt<S, E extends DomainEvent>(
  options: Parameters<typeof handle<S, E>>[0],
): Promise<Handled<S> | EventStoreError> {
  const { store, stream, fold, decide, context, expectedRevision, isNew } = options;
  const { loaded, own } = isNew
    ? { loaded: { state: fold.initial, revision: 'none', position: null } as const, own: [] }
    : await loadWithOwn(store, stream, fold, context.commandId);
  if (own.length > 0) return { ...loaded, events: own };
  options.admit?.(loaded.state);
  if (expectedRevision !== undefined && !isSeen(expectedRevision, loaded.revision)) {
    throw revisionMismatch(stream, expectedRevision, loaded.revision);
  }
  const events = decide(loaded.state, loaded);
  if (events.length === 0) return { ...loaded, events };
  const { namespace = context.namespace } = { namespace: fold.namespaceOf?.(loaded.state) };
  const placed = namespace === context.namespace ? context : { ...context, namespace };
  const written = toNewEvents(stream, events, placed);
  try {
    const result = await store.append(stream, written, loaded.revision);
    return { ...advance(loaded, written, fold, result), events };
  } catch (error) {
    // After a lost response, the stream shows whether the append happened.
    const isLost = error instanceof EventStoreError && error.code === 'OUTCOME_UNKNOWN';
    if (!isLost && !isConflict(error)) throw error;
    return error.repeated ? findOwn(options, error) : error;
  }
}

/**
 * By store and stream, the last retry in the queue. Resolves to the error after which the other waiting calls also give
 * up.
 */
const retries = new WeakMap<EventStore, Map<string, Promise<EventStoreError | null>>>();

/**
 * Commands that lost a race for a stream retry one after the other, so that they don't race each other again. If a call
 * has waited for the log for its longest waiting time, the calls after it fail as well, rather than wait one after the
 * other.
 */
function afterOtherRetries<T>(
  store: EventStore,
  stream: string,
  work: () => Promise<T>,
): Promise<T> {
  const ofStore = retries.get(store) ?? new Map<string, Promise<EventStoreError | null>>();
  retries.set(store, ofStore);
  const before = ofStore.get(stream) ?? Promise.resolve(null);
  const result = before.then((error) => {
    if (error !== null) throw error;
    return work();
  });
  const settled = result.then(
    () => null,
    (error: unknown) => (error instanceof EventStoreError && error.repeated ? error : null),
  );
  ofStore.set(stream, settled);
  void settled.then(() => {
    if (ofStore.get(stream) === settled) ofStore.delete(stream);
  });
  return result;
}

async function loadWithOwn<S, E extends DomainEvent>(
  store: EventStore,
  stream: string,
  fold: Fold<S, E>,
  commandId: string | null,
): Promise<{ readonly loaded: Loaded<S>; readonly own: readonly RecordedEvent[] }> {
  let state = fold.initial;
  let last: RecordedEvent | undefined;
  const own: RecordedEvent[] = [];
  for (;;) {
    const from = last ? last.revision + 1 : 0;
    const page = await store.readStream(stream, { from, limit: PAGE });
    for (const event of page) {
      // A stream holds only events of its kind.
      state = fold.evolve(state, event as unknown as E, event);
      if (commandId !== null && event.metadata.commandId === commandId) own.push(event);
    }
    last = page.at(-1) ?? last;
    if (page.length < PAGE) break;
  }
  const { revision = 'none' as const, position = null } = last ?? {};
  return { loaded: { state, revision, position }, own };
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

/**
 * The revision that a caller saw, or several revisions of which any one is sufficient (`If-Match`). An empty list never
 * matches.
 */
export type SeenRevision = number | readonly number[];

export function isSeen(seen: SeenRevision, revision: number | 'none'): boolean {
  return typeof seen === 'number'
    ? seen === revision
    : revision !== 'none' && seen.includes(revision);
}

/** The refusal of a command whose caller saw another revision (`If-Match`). */
export function revisionMismatch(
  stream: string,
  expected: SeenRevision,
  actual: number | 'none',
): RefusalError {
  const revisions = typeof expected === 'number' ? [expected] : expected;
  const named = revisions.length === 0 ? 'the one that the entity tag names' : revisions.join(', ');
  const message = `${stream} is at revision ${actual}, not ${named}`;
  return new RefusalError('REVISION_MISMATCH', message, { expected, actual });
}
