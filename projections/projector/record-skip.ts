import { placeOfSkipped } from '../../domain/operators/skipped-events.ts';
import { parkedView } from './parking.ts';
import type { ViewOptions } from './view-options.ts';
import type { ViewOrders } from './view-orders.ts';

/**
 * Says in the log which event is left out of a key's document by an order, once. It is said before it is done: should
 * the process end between the two, later generations know of it all the same. One order leaves out one event: should the
 * process end when that is done, and the key is held back for another one, that one stays.
 *
 * @param generation the one in which the key is held back; nothing is said where it is not (any more)
 * @returns why the key is held back still, where the order was carried out before; null where it is to be
 * @throws ReadModelError, EventStoreError
 */
export async function recordSkip(
  { parking, projection }: Pick<ViewOptions, 'parking' | 'projection'>,
  orders: ViewOrders,
  generation: number,
  key: string,
): Promise<string | null> {
  const held = await parking.find(parkedView(projection, generation), key);
  if (held === null) return null;
  const { schema } = projection;
  const { stream, revision = null, position, type: event_type, error } = held;
  const place = { key, stream, revision, position };
  const said = await orders.say(({ parked }) => {
    const ordered = parked.get(key);
    if (ordered?.order !== 'skip' || ordered.left !== null) return [];
    const data = { schema, version: ordered.version, ...place, event_type, error };
    return [{ type: 'ParkedEventSkipped', data }];
  });
  const left = said.parked.get(key)?.left ?? null;
  return left === null || left === placeOfSkipped(place) ? null : error;
}
