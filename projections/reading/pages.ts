import type { JsonObject } from '../../domain/json.ts';
import {
  ReadModelError,
  type ViewDocument,
  type Projection,
  type Query,
  type ReadModel,
} from '../read-model.ts';

/** All documents that a query finds, in pages of `query.limit`. @throws ReadModelError */
export async function* pagesOf<D extends JsonObject>(
  readModel: Pick<ReadModel, 'find'>,
  projection: Projection<D>,
  query: Query,
): AsyncGenerator<readonly ViewDocument<D>[]> {
  let page = await readModel.find(projection, query);
  for (;;) {
    yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < query.limit) return;
    const values = query.sort.map(({ field }) => last.document[field] as string | number | null);
    page = await readModel.find(projection, { ...query, after: { values, key: last.key } });
  }
}

/** The result of a read, or a substitute if its view is not built yet. */
export async function unlessMissing<T, S>(read: Promise<T>, substitute: S): Promise<T | S> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof ReadModelError && error.code === 'NO_VIEW') return substitute;
    throw error;
  }
}
