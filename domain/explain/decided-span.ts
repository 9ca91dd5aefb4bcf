import type { Instant } from '../clock.ts';
import type { EventStore } from '../event-store.ts';
import { endOf, isDecision, placeReaching, startOf, type Decision } from './decisions.ts';

/**
 * The decisions about a span of nominal times. They are read from `fires-<task>`, and never computed from a schedule.
 */

/** A span of nominal times; both ends are inclusive. */
export interface NominalSpan {
  readonly from: Instant;
  readonly to: Instant;
}

/** Events per read. */
const PAGE = 500;

/** A page of decisions, the newest first. */
export interface DecidedPage {
  readonly decisions: readonly Decision[];
  /** The revision before which the next page continues; null on the last page. */
  readonly next: number | null;
}

/**
 * The decisions about a span, newest first.
 * @param page.before only decisions before this revision of the stream; undefined: starts with the newest
 */
export async function decidedPage(
  store: EventStore,
  stream: string,
  { from, to }: NominalSpan,
  { before, limit }: { readonly before: number | undefined; readonly limit: number },
): Promise<DecidedPage> {
  const place = await placeReaching(store, stream, to);
  if (place === null) return { decisions: [], next: null };
  const newest = Math.min(place.reaching, place.last);
  const decisions: Decision[] = [];
  for (let at = before === undefined ? newest : Math.min(newest, before - 1); at >= 0;) {
    const page = await store.readStream(stream, { from: at, direction: 'backwards', limit: PAGE });
    for (const event of page) {
      if (!isDecision(event) || startOf(event) > to) continue;
      if (endOf(event) < from) return { decisions, next: null };
      if (decisions.length === limit) {
        return { decisions, next: (decisions.at(-1) as Decision).revision };
      }
      decisions.push(event);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    at = last.revision - 1;
  }
  return { decisions, next: null };
}

/**
 * All decisions about a span, in order.
 * @param most the number of events to read
 * @returns null if the stream has more events about the span
 */
export async function decidedWithin(
  store: EventStore,
  stream: string,
  { from, to }: NominalSpan,
  most: number,
): Promise<readonly Decision[] | null> {
  const [begin, end] = await Promise.all([
    placeReaching(store, stream, from),
    placeReaching(store, stream, to),
  ]);
  if (begin === null || end === null) return [];
  const last = Math.min(end.reaching, end.last);
  if (last - begin.reaching >= most) return null;
  const decisions: Decision[] = [];
  for (let at = begin.reaching; at <= last;) {
    const limit = Math.min(PAGE, last - at + 1);
    const page = await store.readStream(stream, { from: at, limit });
    decisions.push(...page.filter(isDecision).filter((each) => startOf(each) <= to));
    if (page.length < limit) break;
    at += page.length;
  }
  return decisions;
}
