import type { EventStore } from '../domain/event-store.ts';
import type { Projection, ReadModel } from './read-model.ts';

/** The part of a log that tells whether a view was built from it. */
export type IdentifiableLog = Pick<EventStore, 'reaches' | 'hasHad'>;

/** The part of the read model that tells which log a view was built from. */
export type IdentifiableViews = Pick<ReadModel, 'checkpoint' | 'landmark'>;

/**
 * Whether a view was built from this log: the log reaches the view's checkpoint and has had the view's landmark event.
 * A lagging cluster node may deny both for a short time.
 *
 * @throws ReadModelError `UNAVAILABLE`; EventStoreError `UNAVAILABLE`
 */
export async function isFromLog(
  projection: Projection,
  store: IdentifiableLog,
  readModel: IdentifiableViews,
): Promise<boolean> {
  // The checkpoint is read first: the log and the view may both advance in the meantime.
  if (!(await store.reaches(await readModel.checkpoint(projection)))) return false;
  const landmark = await readModel.landmark(projection);
  return landmark === null || store.hasHad(landmark);
}
