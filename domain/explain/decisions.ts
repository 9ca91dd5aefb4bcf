import { fromIso, type Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { RecordOf } from './explanation.ts';

/** An event of `fires-<task>` that decides nominal times. */
export type Decision = RecordOf<'Fired' | 'FiresSkipped'>;

/** The decisions of `fires-<task>` about a span of nominal times. */
export interface Decisions {
  /** The last decision whose nominal times all lie before the span. */
  readonly before: Decision | null;
  /** Decisions with nominal times in the span, or around it; in order. */
  readonly within: readonly Decision[];
  /** The first decision whose nominal times all lie after the span. */
  readonly after: Decision | null;
  /** The last event of the stream, even if it decides nothing; null for an empty stream. */
  readonly last: RecordedEvent | null;
}

/** Events per read. A few suffice, because nearly every event is a decision. */
const PROBE = 4;
/** The most decisions that are read for one span, which is a second. */
const MAX_WITHIN = 32;

/**
 * Finds the decisions about the nominal times from `start` to `end` (inclusive). A stream is ordered by nominal times:
 * a binary search takes some twenty short reads in a million events.
 */
export async function findDecisions(
  store: EventStore,
  stream: string,
  start: Instant,
  end: Instant,
): Promise<Decisions> {
  const newest = await store.readStream(stream, { direction: 'backwards', limit: PROBE });
  const [last] = newest;
  if (last === undefined) return { before: null, within: [], after: null, last: null };
  // Checked first, because most questions are about the newest decisions.
  const latest = newest.find(isDecision);
  if (latest !== undefined && endOf(latest) < start) {
    return { before: latest, within: [], after: null, last };
  }
  const [first = last] = await store.readStream(stream, { limit: 1 });
  const from = await firstReaching(store, stream, start, first.revision, last.revision + 1);
  const { value: before = null } = await decisions(store, stream, from - 1, 'backwards').next();
  const within: Decision[] = [];
  for await (const decision of decisions(store, stream, from, 'forwards')) {
    if (startOf(decision) > end) return { before, within, after: decision, last };
    if (within.push(decision) === MAX_WITHIN) break;
  }
  return { before, within, after: null, last };
}

/**
 * The place in a stream at which the decisions reach an instant.
 * @returns `reaching`: the lowest revision from which all decisions reach or pass it, one beyond `last` for none;
 *   `last`: of the stream; null for an empty stream
 */
export async function placeReaching(
  store: EventStore,
  stream: string,
  instant: Instant,
): Promise<{ readonly reaching: number; readonly last: number } | null> {
  const [[first], [newest]] = await Promise.all([
    store.readStream(stream, { limit: 1 }),
    store.readStream(stream, { direction: 'backwards', limit: 1 }),
  ]);
  if (first === undefined || newest === undefined) return null;
  const last = newest.revision;
  return { reaching: await firstReaching(store, stream, instant, first.revision, last + 1), last };
}

/** Whether an event decides nominal times. Other events of the stream only name the next fire. */
export function isDecision(event: RecordedEvent): event is Decision {
  return event.type === 'Fired' || event.type === 'FiresSkipped';
}

/** The first nominal time that an event decides. */
export function startOf(decision: Decision): Instant {
  return fromIso(decision.type === 'Fired' ? decision.data.nominal : decision.data.from);
}

/** The last nominal time that an event decides. */
export function endOf(decision: Decision): Instant {
  return fromIso(decision.type === 'Fired' ? decision.data.nominal : decision.data.to);
}

/** The lowest revision from which all decisions reach or pass the instant; `high` if there is none. */
async function firstReaching(
  store: EventStore,
  stream: string,
  instant: Instant,
  low: number,
  high: number,
): Promise<number> {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const { value: probe } = await decisions(store, stream, middle, 'forwards').next();
    if (!probe || probe.revision >= to || endOf(probe) >= instant) to = middle;
    else from = probe.revision + 1;
  }
  return from;
}

/** The decisions from a revision on, in either direction. */
async function* decisions(
  store: EventStore,
  stream: string,
  from: number,
  direction: 'forwards' | 'backwards',
): AsyncGenerator<Decision, undefined> {
  for (let at = from; at >= 0;) {
    const page = await store.readStream(stream, { from: at, direction, limit: PROBE });
    yield* page.filter(isDecision);
    const last = page.at(-1);
    if (last === undefined || page.length < PROBE) return;
    at = last.revision + (direction === 'forwards' ? 1 : -1);
  }
}
