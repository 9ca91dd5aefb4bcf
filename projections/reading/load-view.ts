import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isFromLog, type IdentifiableLog, type IdentifiableViews } from '../log-identity.ts';
import { ReadModelError, type Filter, type Projection, type ReadModel } from '../read-model.ts';
import { pagesOf, unlessMissing } from './pages.ts';

/**
 * Documents per read. Large pages cost memory twice, here and in the reading thread. With small ones, a store may have
 * to evaluate the filters more often.
 */
const PAGE = 2_000;

/** The part of the read model that loading a view needs. */
export type ReadableViews = IdentifiableViews & Pick<ReadModel, 'find'>;

/**
 * Reads a view, or the part that passes the filters, into memory, before its reader follows the log.
 *
 * The checkpoint is read first. Documents may be ahead of it; the reader recognises that by the events' revisions. If
 * there is no view yet, the reader starts at the log's beginning.
 *
 * @param from.store the log that the reader follows afterwards
 * @returns the position to follow the log from
 * @throws ReadModelError `UNAVAILABLE`, also for a view of another log, which the projector rebuilds; EventStoreError
 */
export async function loadView<D extends JsonObject>(
  { store, readModel }: { readonly store: IdentifiableLog; readonly readModel: ReadableViews },
  projection: Projection<D>,
  filters: readonly Filter[],
  each: (document: D, key: string) => void,
): Promise<Position> {
  return unlessMissing(loadFrom({ store, readModel }, projection, filters, each), BEGINNING);
}

async function loadFrom<D extends JsonObject>(
  { store, readModel }: { readonly store: IdentifiableLog; readonly readModel: ReadableViews },
  projection: Projection<D>,
  filters: readonly Filter[],
  each: (document: D, key: string) => void,
): Promise<Position> {
  if (!(await isFromLog(projection, store, readModel))) {
    const message = `the view ${projection.name} was built from another log: a projector has to rebuild it`;
    throw new ReadModelError('UNAVAILABLE', message);
  }
  const after = await readModel.checkpoint(projection);
  for await (const page of pagesOf(readModel, projection, { filters, sort: [], limit: PAGE })) {
    for (const { document, key } of page) each(document, key);
  }
  return after;
}
