import { placeOfSkipped } from '../../domain/operators/skipped-events.ts';
import { parkedView } from './parking.ts';
import type { ViewOptions } from './view-options.ts';
import type { ViewOrders } from './view-orders.ts';

/**
 * Says in the log which event is left out of a key's document by an order, once. It is said before it is done: should
 * the process end between the two, later generations know of it all the same.
 *
 * @param generation the one in which the key is held back; nothing is said where it is not (any more)
 * @throws ReadModelError, EventStoreError
 */
export async function recordSkip(
  { parking, projection }: Pick<ViewOptions, 'parking' | 'projection'>,
  orders: ViewOrders,
  generation: number,
  key: string,
): Promise<void> {
  const held = await parking.find(parkedView(projection, generation), key);
  if (held === null) return;
  const { schema } = projection;
  const { stream, revision = null, position, type: event_type, error } = held;
  const place = { key, stream, revision, position };
  await orders.say(({ parked, skipped }) => {
    const ordered = parked.get(key);
    if (ordered?.order !== 'skip' || skipped.has(placeOfSkipped(place))) return [];
    const data = { schema, version: ordered.version, ...place, event_type, error };
    return [{ type: 'ParkedEventSkipped', data }];
  });
}
