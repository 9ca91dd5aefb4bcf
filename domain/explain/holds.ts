import { fromIso, type Instant } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import { streams } from '../streams.ts';
import type { Note, RecordOf } from './explanation.ts';
import type { Words } from './words.ts';

/** How many orders are read, from the newest back: operators hold a service now and then. */
const MAX_ORDERS = 1000;

/** A hold on the whole service, during which nothing fires and no run starts. */
export interface Hold {
  readonly held: RecordOf<'OperationsHeld'>;
  /** Null while it lasts. */
  readonly released: RecordOf<'OperationsReleased'> | null;
}

/** Orders for the whole service, the newest first. */
export function readOrders(store: EventStore): Promise<readonly RecordedEvent[]> {
  return store.readStream(streams.operations(), { direction: 'backwards', limit: MAX_ORDERS });
}

/** The last hold in force at any time of a span (inclusive). @param orders the newest first */
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

/** Who put the service on hold, and who released it. */
export function holdNote({ held, released }: Hold, words: Words): Note {
  const sentences = [words.act(held, 'put the service on hold')];
  if (released !== null) sentences.push(words.act(released, 'released it'));
  return { sentences, evidence: [held, released] };
}
