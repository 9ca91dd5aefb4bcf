import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isOfLog, type KnownLog, type MarkedViews } from '../of-log.ts';
import { ReadModelError, type Filter, type Projection, type ReadModel } from '../read-model.ts';

/**
 * Documents at a time: all of a page are in memory twice, here and in the thread that reads them. Not fewer, as a store
 * may have to look at everything that passes the filters for each page.
 */
const PAGE = 2_000;

/** What of the read model it takes to load views. */
export type ReadableViews = MarkedViews & Pick<ReadModel, 'find'>;

/**
 * Reads a view (or the part that passes the filters) into memory, as the start of following the log.
 *
 * The position is taken first: documents may already have seen more, which whoever follows recognises by the
 * events' revisions. Where there is no view yet, everything has to come from the log's beginning.
 *
 * A view of another log is not read: whoever begins again later finds it made anew by the projector.
 *
 * @param from.store the log that is followed then
 * @returns the position to follow the log from
 * @throws ReadModelError `UNAVAILABLE`, for a view of another log too; EventStoreError
 */
export async function loadView<D extends JsonObject>(
  { store, readModel }: { readonly store: KnownLog; readonly readModel: ReadableViews },
  projection: Projection<D>,
  filters: readonly Filter[],
  each: (document: D, key: string) => void,
): Promise<Position> {
  try {
    if (!(await isOfLog(projection, store, readModel))) throw ofOtherLog(projection);
    const after = await readModel.checkpoint(projection);
    let key: string | null = null;
    do {
      const page: readonly { readonly key: string; readonly document: D }[] = await readModel.find(
        projection,
        { filters, sort: [], limit: PAGE, ...(key === null ? {} : { after: { values: [], key } }) },
      );
      for (const kept of page) each(kept.document, kept.key);
      key = page.length < PAGE ? null : (page.at(-1)?.key ?? null);
    } while (key !== null);
    return after;
  } catch (error) {
    if (error instanceof ReadModelError && error.code === 'NO_VIEW') return BEGINNING;
    throw error;
  }
}

function ofOtherLog({ name }: Projection): ReadModelError {
  const text = `the view ${name} is of another log than this one: a projector has to make it anew`;
  return new ReadModelError('UNAVAILABLE', text);
}
