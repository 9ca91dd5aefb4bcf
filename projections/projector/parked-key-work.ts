import { BEGINNING } from '../../domain/event-store.ts';
import type { ParkedOrder } from '../../domain/vocabulary.ts';
import { parkedView } from './parking.ts';
import { ParkedKey } from './redo-parked.ts';
import type { ViewOptions } from './view-options.ts';

/**
 * Folds what was held back for a key, and lets it go on; or holds it back for what it meets next. Most is folded while
 * the view is fed; only the rest, and the writing, keeps it waiting.
 *
 * @param rest called before the generation is written: stops what feeds it
 * @returns why the key is held back still; null where it is not
 * @throws ReadModelError, EventStoreError
 */
export async function redoParkedKey(
  { store, readModel, projection, parking, fence }: ViewOptions,
  ask: {
    readonly generation: number;
    readonly key: string;
    readonly order: ParkedOrder;
    readonly signal: AbortSignal;
    readonly rest: () => Promise<void>;
  },
): Promise<string | null> {
  const { generation, key, order, signal } = ask;
  const view = parkedView(projection, generation);
  const parked = await parking.find(view, key);
  if (parked === null) return null;
  const held = new ParkedKey({ store, projection, parked, order });
  const kept = (await readModel.get(projection, key)) ?? { position: BEGINNING, document: null };
  const first = await held.redo(kept, signal);
  await ask.rest();
  const writer = await readModel.openWriter(projection, { generation, bulk: false, fence });
  try {
    const from = await writer.checkpoint();
    const { position, document, poisoned } = await held.goOn(first, from, signal);
    if (position > kept.position) {
      await writer.write({ documents: [{ key, position, document }], from, to: from });
    }
    if (signal.aborted) return null;
    if (poisoned === null) await parking.release(view, key, await store.head());
    else await parking.park(view, [poisoned]);
    return poisoned?.error ?? null;
  } finally {
    await writer.close();
  }
}
