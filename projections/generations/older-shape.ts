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
 * The older shapes of a projection that its code can read, the latest first. `unqueried` does not apply, because their
 * release may return and may receive any query.
 */
function olderShapes(projection: Projection): readonly Projection[] {
  return (projection.readsOlder ?? [])
    .filter((schema) => schema < projection.schema)
    .toSorted((a, b) => b - a)
    .map((schema) => ({ ...withoutAdded(inShape(projection, schema)), unqueried: {} }));
}

/** A shape without the queried fields that its schema lacks, and without their indexes and tallies. */
function withoutAdded(shape: Projection): Projection {
  const { schema, addedFields, fields, indexes, covered, tallies } = shape;
  if (addedFields === undefined) return shape;
  const has = (field: string): boolean => (addedFields[field] ?? 0) <= schema;
  const kept = indexes.map((index) => index.every(has));
  return {
    ...shape,
    fields: Object.fromEntries(Object.entries(fields).filter(([field]) => has(field))),
    indexes: indexes.filter((_, place) => kept[place]),
    ...(covered === undefined
      ? {}
      : {
          covered: covered.filter((_, place) => kept[place]).map((fields) => fields.filter(has)),
        }),
    ...(tallies === undefined
      ? {}
      : { tallies: tallies.map((tally) => ({ ...tally, fields: tally.fields.filter(has) })) }),
  };
}

/**
 * The shape that reads use: the code's own if it has a live generation, otherwise the latest older shape with one. null
 * if there is none.
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

/**
 * Converts filters for an older shape. Fields that it lacks are null in all of its documents.
 * @returns null if it cannot answer them
 */
function filtersFor(shape: Projection, filters: readonly Filter[]): readonly Filter[] | null {
  const lacking = filters.filter(({ field }) => !(field in shape.fields));
  if (lacking.length === 0) return filters;
  if (lacking.some(({ op, value }) => op !== 'eq' || value !== null)) return null;
  return filters.filter((filter) => !lacking.includes(filter));
}

/** A read model that reads a view of an older release until the view of this release is built. */
export function readingOlderShapes(readModel: ReadModel): ReadModel {
  /** The present shape is checked first, because there is usually no older one. */
  const read = <T>(
    projection: Projection,
    asked: readonly Filter[],
    act: (shape: Projection, filters: readonly Filter[]) => Promise<T>,
  ): Promise<T> => {
    const reading = act(projection, asked);
    if (projection.readsOlder === undefined) return reading;
    return reading.catch(async (error: unknown) => {
      if (!(error instanceof ReadModelError) || error.code !== 'NO_VIEW') throw error;
      const shape = await shapeRead(readModel, projection);
      const filters = shape === null ? null : filtersFor(shape, asked);
      if (shape === null || filters === null) throw error;
      return act(shape, filters);
    });
  };
  return decorate(readModel, {
    // The code reads documents of all these shapes, but the types cannot express that.
    get: ((projection: Projection, key: string) =>
      read(projection, [], (shape) => readModel.get(shape, key))) as ReadModel['get'],
    find: ((projection: Projection, query: Query) =>
      read(projection, query.filters, (shape, filters) =>
        readModel.find(shape, { ...query, filters }),
      )) as ReadModel['find'],
    count: (projection: Projection, asked: readonly Filter[]) =>
      read(projection, asked, (shape, filters) => readModel.count(shape, filters)),
    values: (projection, query) =>
      read(projection, query.filters, async (shape, filters) => {
        const fields = query.fields.filter((field) => field in shape.fields);
        const found = await readModel.values(shape, { filters, fields });
        if (fields.length === query.fields.length) return found;
        const places = query.fields.map((field) => fields.indexOf(field));
        return found.map(({ key, values }) => {
          return { key, values: places.map((place) => values[place] ?? null) };
        });
      }),
    list: (projection, query) =>
      read(projection, query.filters, (shape, filters) => {
        const { counted } = query;
        const known =
          counted === null || counted === undefined
            ? counted
            : (filtersFor(shape, counted) ?? counted);
        return readModel.list(shape, {
          ...query,
          filters,
          ...(known === undefined ? {} : { counted: known }),
        });
      }),
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
