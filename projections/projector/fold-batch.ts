import type { Position, RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isSkipped, type SkippedEvents } from '../../domain/operators/skipped-events.ts';
import { errorMessage } from '../error-message.ts';
import type { Projection } from '../read-model.ts';

const NONE: SkippedEvents = new Set();

/** An event and the keys of the documents of one view that it changes. */
export interface TouchingEvent {
  readonly event: RecordedEvent;
  readonly keys: readonly string[];
  /** Why the event cannot be folded, if known beforehand. */
  readonly fault: string | undefined;
}

/** An event that could not be folded into one document. That event and later events for the key are withheld. */
export interface PoisonedKey {
  readonly key: string;
  readonly position: Position;
  readonly stream: string;
  /** The event's revision in its stream; missing if an older release parked the key. */
  readonly revision?: number;
  readonly type: string;
  readonly error: string;
}

export interface KnownDocument {
  readonly position: Position;
  /** null: the document does not exist or was deleted. */
  readonly document: JsonObject | null;
}

export interface FoldedBatch {
  /** The documents to write: each changed document once, in its state after the last event. */
  readonly documents: readonly ({ readonly key: string } & KnownDocument)[];
  readonly poisoned: readonly PoisonedKey[];
  /** Skipped events that cannot be folded here either. They park nothing. */
  readonly leftOut: readonly PoisonedKey[];
}

/**
 * The events that change a view, with the keys of the documents they change. An event whose keys cannot be computed
 * (broken data) gets its stream's name as key, so it parks nothing else.
 */
export function touchingEvents(
  projection: Projection,
  events: readonly RecordedEvent[],
  after: Position,
): readonly TouchingEvent[] {
  const touching: TouchingEvent[] = [];
  for (const event of events) {
    if (event.position <= after) continue;
    if (!projection.streams.some((prefix) => event.stream.startsWith(prefix))) continue;
    const touched = touchedBy(projection, event);
    if (touched.keys.length > 0) touching.push(touched);
  }
  return touching;
}

function touchedBy(projection: Projection, event: RecordedEvent): TouchingEvent {
  try {
    return { event, keys: projection.keys(event), fault: event.fault };
  } catch (error) {
    const fault = event.fault ?? errorMessage(error);
    return { event, keys: [`stream ${event.stream}`], fault };
  }
}

/**
 * Folds events into documents, in memory. A document never takes an event twice: events at or before its position are
 * passed over. Pure and repeatable.
 *
 * @param known the existing documents of all keys
 * @param parked parked keys, with the position from which on their events are withheld
 * @param skipped events to leave out of documents into which they cannot be folded; default: none
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
 * {@link foldBatch} for a batch in pieces: `changed` has the documents that earlier pieces changed, and receives those
 * that this one changes. No other code may hold these documents.
 *
 * @param known the existing documents of all keys that are not in `changed`
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
      // The size is checked first, because there are hardly ever parked keys.
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
        // An unchanged document needs no write, because folding the event again would not change it
        // either.
        if (document !== present) changed.set(key, { position: event.position, document });
      } catch (error) {
        const { position, stream, revision, type } = event;
        const poison = { key, position, stream, revision, type, error: errorMessage(error) };
        if (isSkipped(skipped, key, event)) leftOut.push(poison);
        else poisoned.set(key, poison);
      }
    }
  }
  return { poisoned: [...poisoned.values()], leftOut };
}

/** The keys of all documents that a batch touches, without duplicates. */
export const keysTouched = (touching: readonly TouchingEvent[]): readonly string[] => [
  ...new Set(touching.flatMap(({ keys }) => keys)),
];

/**
 * For a view with one stream per document: the keys whose streams start in this batch, so they have no document yet.
 * Revisions begin with 0 even if the first events were truncated later.
 */
export const keysBegun = (touching: readonly TouchingEvent[]): readonly string[] =>
  touching.filter(({ event }) => event.revision === 0).flatMap(({ keys }) => keys);
