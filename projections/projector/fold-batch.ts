import type { Position, RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isSkipped, type SkippedEvents } from '../../domain/operators/skipped-events.ts';
import type { Projection } from '../read-model.ts';

const NONE: SkippedEvents = new Set();

/** An event with the documents of one view that it changes. */
export interface TouchingEvent {
  readonly event: RecordedEvent;
  readonly keys: readonly string[];
  /** Why it can't be folded, where that is known beforehand. */
  readonly fault: string | undefined;
}

/** An event that could not be folded into one document; what follows for that key is held back. */
export interface PoisonedKey {
  readonly key: string;
  /** Of the event. */
  readonly position: Position;
  readonly stream: string;
  /** In its stream; left out where an older release has remembered it. */
  readonly revision?: number;
  readonly type: string;
  readonly error: string;
}

export interface KnownDocument {
  /** The last event that it has taken. */
  readonly position: Position;
  /** null: there is none (any more). */
  readonly document: JsonObject | null;
}

export interface FoldedBatch {
  /** What has to be written: each document once, as it is after the last event for it. */
  readonly documents: readonly ({ readonly key: string } & KnownDocument)[];
  readonly poisoned: readonly PoisonedKey[];
  /** What was skipped before, could not be folded here either, and holds nothing back. */
  readonly leftOut: readonly PoisonedKey[];
}

/**
 * The events that change something in a view, with the keys of what they change. An event whose keys can't
 * be told (its data is broken) is given its stream's name as the key: it blocks nothing else, but counts.
 */
export function touchingEvents(
  projection: Projection,
  events: readonly RecordedEvent[],
  after: Position,
): readonly TouchingEvent[] {
  const touching: TouchingEvent[] = [];
  const { streams } = projection;
  const isFollowed = (stream: string): boolean => {
    for (const prefix of streams) if (stream.startsWith(prefix)) return true;
    return false;
  };
  for (const event of events) {
    if (event.position <= after || !isFollowed(event.stream)) continue;
    const touched = touchedBy(projection, event);
    if (touched.keys.length > 0) touching.push(touched);
  }
  return touching;
}

function touchedBy(projection: Projection, event: RecordedEvent): TouchingEvent {
  try {
    return { event, keys: projection.keys(event), fault: event.fault };
  } catch (error) {
    const fault = event.fault ?? messageOf(error);
    return { event, keys: [`stream ${event.stream}`], fault };
  }
}

/**
 * Folds events into documents, in memory. A document never takes an event twice: one at or before its
 * position is passed over. Pure, and gives the same when it is repeated.
 *
 * @param known the documents of all keys, as far as there are any
 * @param parked keys that are held back, from which position on
 * @param skipped events to leave out of documents into which they can't be folded; default: none
 */
export function foldBatch(
  projection: Projection,
  touching: readonly TouchingEvent[],
  known: ReadonlyMap<string, KnownDocument>,
  parked: ReadonlyMap<string, Position>,
  skipped: SkippedEvents = NONE,
): FoldedBatch {
  const changed = new Map<string, KnownDocument>();
  const held = foldInto(changed, projection, touching, known, parked, skipped);
  const documents = Array.from(changed, ([key, after]) => ({ key, ...after }));
  return { documents, ...held };
}

/**
 * {@link foldBatch} for a batch that comes in pieces: what its events before have changed stands in `changed`, and what
 * these change goes there. Nobody else may have those documents.
 *
 * @param known the documents of all keys that are not in `changed`, as far as there are any
 */
export function foldInto(
  changed: Map<string, KnownDocument>,
  projection: Projection,
  touching: readonly TouchingEvent[],
  known: ReadonlyMap<string, KnownDocument>,
  parked: ReadonlyMap<string, Position>,
  skipped: SkippedEvents,
): Pick<FoldedBatch, 'poisoned' | 'leftOut'> {
  const poisoned = new Map<string, PoisonedKey>();
  const leftOut: PoisonedKey[] = [];
  for (const { event, keys, fault } of touching) {
    for (const key of keys) {
      // Asked only where there is something: nearly always nothing is held back.
      if (poisoned.size > 0 && poisoned.has(key)) continue;
      const since = parked.size > 0 ? parked.get(key) : undefined;
      if (since !== undefined && event.position >= since) continue;
      const own = changed.get(key);
      const before = own ?? known.get(key);
      if (before !== undefined && before.position >= event.position) continue;
      const present = before?.document ?? null;
      try {
        if (fault !== undefined) throw new Error(fault);
        const document = projection.evolve(present, event, key, own !== undefined);
        // The same document again (or still none) needs no write; taking the event twice would not change it.
        if (document !== present) changed.set(key, { position: event.position, document });
      } catch (error) {
        const { position, stream, revision, type } = event;
        const poison = { key, position, stream, revision, type, error: messageOf(error) };
        if (isSkipped(skipped, key, event)) leftOut.push(poison);
        else poisoned.set(key, poison);
      }
    }
  }
  return { poisoned: [...poisoned.values()], leftOut };
}

/** The keys of all documents that a batch touches, each once. */
export function keysTouched(touching: readonly TouchingEvent[]): readonly string[] {
  const keys = new Set<string>();
  for (const each of touching) for (const key of each.keys) keys.add(key);
  return [...keys];
}

/**
 * Of a view whose documents have streams of their own: the keys whose streams begin with this batch, which have no
 * document yet. A stream's revisions begin with 0, once and for all, also where its first events were truncated since.
 */
export function keysBegun(touching: readonly TouchingEvent[]): readonly string[] {
  const keys: string[] = [];
  for (const each of touching) if (each.event.revision === 0) keys.push(...each.keys);
  return keys;
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
