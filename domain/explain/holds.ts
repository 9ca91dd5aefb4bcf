import { fromIso, type Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import { streams } from '../streams.ts';
import type { RecordOf, Verdict } from './explanation.ts';
import type { Words } from './words.ts';

/** So many orders are looked at, from the newest back: operators hold a service now and then. */
const MOST_ORDERS = 1000;

/** A hold on the whole service, in which nothing fires and no run starts. */
export interface Hold {
  readonly held: RecordOf<'OperationsHeld'>;
  /** null while it goes on. */
  readonly released: RecordOf<'OperationsReleased'> | null;
}

/** What operators ordered of the whole service, the newest first. */
export function readOrders(store: EventStore): Promise<readonly RecordedEvent[]> {
  return store.readStream(streams.operations(), { direction: 'backwards', limit: MOST_ORDERS });
}

/** The last hold that was in force at any time of a span (both ends inclusive). @param orders the newest first */
export function holdWithin(
  orders: readonly RecordedEvent[],
  start: Instant,
  end: Instant,
): Hold | null {
  let released: Hold['released'] = null;
  for (const order of orders) {
    const at = fromIso(order.metadata.occurredAt);
    if (order.type === 'OperationsReleased') {
      if (at < start) return null;
      released = order;
    } else if (order.type === 'OperationsHeld') {
      if (at <= end) return { held: order, released };
      released = null;
    }
  }
  return null;
}

/** A hold in words: `on hold from … to … by ada (…), who said "moving the mail server"`. */
export function holdWords({ held, released }: Hold, words: Words): string {
  const since = words.at(held.metadata.occurredAt);
  const span =
    released === null
      ? `since ${since}`
      : `from ${since} to ${words.at(released.metadata.occurredAt)}`;
  const by = words.by(held);
  // Holds from before reasons were part of every event's metadata have it in their data alone.
  return held.metadata.reason === undefined
    ? `on hold ${span} ${by} (${held.data.reason})`
    : `on hold ${span} ${by}`;
}

/** The events of a hold. */
export function eventsOfHold(hold: Hold | null): Verdict['evidence'] {
  return hold === null ? [] : [hold.held, hold.released];
}
