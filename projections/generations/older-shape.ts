import { decorate } from '../../domain/decorate.ts';
import { BEGINNING } from '../../domain/event-store.ts';
import {
  ReadModelError,
  type Filter,
  type Projection,
  type Query,
  type ReadModel,
} from '../read-model.ts';

/** A projection in another shape, for uses that do not read its documents. */
export function inShape(
  { readsOlder: _readsOlder, ...projection }: Projection,
  schema: number,
): Projection {
  return { ...projection, schema };
}

/**
 * The older shapes of a projection that its code can read, the latest first. Their release may come back, and may be
 * asked for anything; so `unqueried` does not apply.
 */
function olderShapes(projection: Projection): readonly Projection[] {
  return (projection.readsOlder ?? [])
    .filter((schema) => schema < projection.schema)
    .toSorted((a, b) => b - a)
    .map((schema) => ({ ...withoutAdded(inShape(projection, schema)), unqueried: {} }));
}

/** A shape without the queried fields that its schema lacks, and without their indexes. */
function withoutAdded(shape: Projection): Projection {
  const { schema, addedFields, fields, indexes, covered } = shape;
  if (addedFields === undefined) return shape;
  const has = (field: string): boolean => (addedFields[field] ?? 0) <= schema;
  const kept = indexes.map((index) => index.every(has));
  return {
    ...shape,
    fields: Object.fromEntries(Object.entries(fields).filter(([field]) => has(field))),
    indexes: indexes.filter((_, place) => kept[place]),
    ...(covered === undefined ? {} : { covered: covered.filter((_, place) => kept[place]) }),
  };
}

/**
 * The shape that reads use: the code's own, or, until that has a live generation, the latest older one that has. null if
 * there is none.
 *
 * @throws ReadModelError `UNAVAILABLE`
 */
export async function shapeRead(
  readModel: ReadModel,
  projection: Projection,
): Promise<Projection | null> {
  for (const shape of [projection, ...olderShapes(projection)]) {
    if ((await readModel.liveGeneration(shape)) !== null) return shape;
  }
  return null;
}

/** A read model that reads a view of an older release until the view of this release is built. */
export function readingOlderShapes(readModel: ReadModel): ReadModel {
  /** The own shape is asked first, as there mostly is no older one. @param filters of the query */
  const read = <T>(
    projection: Projection,
    act: (shape: Projection) => Promise<T>,
    filters: readonly Filter[] = [],
  ): Promise<T> => {
    const asked = act(projection);
    if (projection.readsOlder === undefined) return asked;
    return asked.catch(async (error: unknown) => {
      if (!(error instanceof ReadModelError) || error.code !== 'NO_VIEW') throw error;
      const shape = await shapeRead(readModel, projection);
      if (shape === null || filters.some(({ field }) => !(field in shape.fields))) throw error;
      return act(shape);
    });
  };
  return decorate(readModel, {
    // The code reads documents of all these shapes, which the types cannot say.
    get: ((projection: Projection, key: string) =>
      read(projection, (shape) => readModel.get(shape, key))) as ReadModel['get'],
    find: ((projection: Projection, query: Query) =>
      read(
        projection,
        (shape) => readModel.find(shape, query),
        query.filters,
      )) as ReadModel['find'],
    count: (projection: Projection, filters: readonly Filter[]) =>
      read(projection, (shape) => readModel.count(shape, filters), filters),
    list: (projection, query) =>
      read(projection, (shape) => readModel.list(shape, query), query.filters),
    async checkpoint(projection) {
      const position = await readModel.checkpoint(projection);
      if (position !== BEGINNING || projection.readsOlder === undefined) return position;
      const shape = await shapeRead(readModel, projection);
      return shape === null ? BEGINNING : readModel.checkpoint(shape);
    },
    async landmark(projection) {
      const shape =
        projection.readsOlder === undefined ? projection : await shapeRead(readModel, projection);
      return shape === null ? null : readModel.landmark(shape);
    },
  });
}
