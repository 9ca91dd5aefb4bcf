import { fromIso, type Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { RecordOf } from './explanation.ts';

/** An event of `fires-<task>` that decides nominal times. */
export type Decision = RecordOf<'Fired' | 'FiresSkipped'>;

/** What `fires-<task>` says about a span of nominal times. */
export interface Decisions {
  /** The last decision whose nominal times all lie before the span. */
  readonly before: Decision | null;
  /** Decisions with nominal times in the span, or around all of it; in order. */
  readonly within: readonly Decision[];
  /** The first decision whose nominal times all lie after the span. */
  readonly after: Decision | null;
  /** The last event of the stream, which may decide nothing; null for an empty one. */
  readonly last: RecordedEvent | null;
}

/** So many events are read at a time. Few, as nearly every one decides something. */
const PROBE = 4;
/** More decisions than these are not looked for within one span, which is a second. */
const MOST_WITHIN = 32;

/**
 * Finds what was decided about the nominal times from `start` to `end` (both inclusive). The stream is in the
 * order of its nominal times, so that it is found by halving: some twenty short reads in a stream of a million
 * events, and none of them longer for that.
 */
export async function findDecisions(
  store: EventStore,
  stream: string,
  start: Instant,
  end: Instant,
): Promise<Decisions> {
  const [[first], newest] = await Promise.all([
    store.readStream(stream, { limit: 1 }),
    store.readStream(stream, { direction: 'backwards', limit: PROBE }),
  ]);
  const [last] = newest;
  if (first === undefined || last === undefined) {
    return { before: null, within: [], after: null, last: null };
  }
  // Mostly it is the newest that is asked about.
  const latest = newest.find(isDecision);
  if (latest !== undefined && endOf(latest) < start) {
    return { before: latest, within: [], after: null, last };
  }
  const from = await firstReaching(store, stream, start, first.revision, last.revision + 1);
  const before = await decisionBefore(store, stream, from, first.revision);
  const { within, after } = await decisionsFrom(store, stream, from, last.revision, end);
  return { before, within, after, last };
}

/** Whether an event decides nominal times; another of the stream only says what comes next. */
export function isDecision(event: RecordedEvent): event is Decision {
  return event.type === 'Fired' || event.type === 'FiresSkipped';
}

/** The first nominal time that is decided. */
export function startOf(decision: Decision): Instant {
  return fromIso(decision.type === 'Fired' ? decision.data.nominal : decision.data.from);
}

/** The last nominal time that is decided. */
export function endOf(decision: Decision): Instant {
  return fromIso(decision.type === 'Fired' ? decision.data.nominal : decision.data.to);
}

/** The lowest revision from which on all decisions reach the instant or lie behind it; `high` where none does. */
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
    const probe = await nextDecision(store, stream, middle, to);
    if (probe === null || endOf(probe) >= instant) to = middle;
    else from = probe.revision + 1;
  }
  return from;
}

/** The first decision from a revision on, before another. */
async function nextDecision(
  store: EventStore,
  stream: string,
  from: number,
  before: number,
): Promise<Decision | null> {
  for (let at = from; at < before;) {
    const page = await store.readStream(stream, { from: at, limit: PROBE });
    const found = page.find(isDecision);
    if (found !== undefined) return found.revision < before ? found : null;
    const end = page.at(-1);
    if (end === undefined) return null;
    at = end.revision + 1;
  }
  return null;
}

async function decisionBefore(
  store: EventStore,
  stream: string,
  before: number,
  first: number,
): Promise<Decision | null> {
  for (let at = before - 1; at >= first;) {
    const page = await store.readStream(stream, { from: at, direction: 'backwards', limit: PROBE });
    const found = page.find(isDecision);
    if (found !== undefined) return found;
    const end = page.at(-1);
    if (end === undefined) return null;
    at = end.revision - 1;
  }
  return null;
}

async function decisionsFrom(
  store: EventStore,
  stream: string,
  from: number,
  last: number,
  end: Instant,
): Promise<Pick<Decisions, 'within' | 'after'>> {
  const within: Decision[] = [];
  for (let at = from; at <= last && within.length < MOST_WITHIN;) {
    const page = await store.readStream(stream, { from: at, limit: PROBE });
    for (const event of page) {
      if (!isDecision(event)) continue;
      if (startOf(event) > end) return { within, after: event };
      within.push(event);
    }
    const read = page.at(-1);
    if (read === undefined) break;
    at = read.revision + 1;
  }
  return { within, after: null };
}
