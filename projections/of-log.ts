import type { EventStore } from '../domain/event-store.ts';
import type { Projection, ReadModel } from './read-model.ts';

/** What of a log tells whether a view is of it. */
export type KnownLog = Pick<EventStore, 'reaches' | 'hasHad'>;

/** What of the read model tells of which log a view is. */
export type MarkedViews = Pick<ReadModel, 'checkpoint' | 'landmark'>;

/**
 * Whether a view was made of this log, as far as that can be told: the log has come as far as the view has, and has had
 * the event by which the view remembers its own. A node of a cluster may deny both for a moment.
 *
 * @throws ReadModelError `UNAVAILABLE`; EventStoreError `UNAVAILABLE`
 */
export async function isOfLog(
  projection: Projection,
  store: KnownLog,
  readModel: MarkedViews,
): Promise<boolean> {
  // The log may go on meanwhile, and views with it: it is asked for after what they say.
  if (!(await store.reaches(await readModel.checkpoint(projection)))) return false;
  const landmark = await readModel.landmark(projection);
  return landmark === null || store.hasHad(landmark);
}
