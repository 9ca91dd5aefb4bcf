import { Type } from '@sinclair/typebox';
import type { JsonObject } from '../../domain/json.ts';
import type {
  FieldKind,
  Filter,
  KeptDocument,
  Projection,
  Query,
  ReadModel,
  Sort,
} from '../../projections/read-model.ts';
import { badRequest } from '../errors.ts';

/** Query parameters of every list. */
export const pageParameters = {
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  offset: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }),
  cursor: Type.Optional(Type.String({ maxLength: 2000 })),
  after: Type.Optional(Type.String({ maxLength: 200 })),
};

export interface PageQuery {
  readonly limit: number;
  readonly offset: number;
  readonly cursor?: string;
}

/** The envelope of every list. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
  readonly has_more: boolean;
  /** Goes on behind the last item, at any depth at the same cost; null at the end. */
  readonly next_cursor: string | null;
}

/**
 * One page of a view, and how many there are in all.
 *
 * @param show what is kept of a document
 * @param slice documents that are read at a time, where each may be large; default: all at once
 */
export async function listPage<D extends JsonObject, T>(
  readModel: ReadModel,
  projection: Projection<D>,
  asked: { readonly filters: readonly Filter[]; readonly sort: readonly Sort[] },
  page: PageQuery,
  show: (document: D) => T,
  slice = Infinity,
): Promise<Page<T>> {
  const { filters, sort } = asked;
  const { limit, offset, cursor } = page;
  const after = cursor === undefined ? null : parseCursor(cursor, sort, projection);
  const place = after === null ? { offset } : { after };
  const [{ items, last, has_more }, total] = await Promise.all([
    readItems(readModel, projection, { filters, sort, limit, ...place }, show, slice),
    readModel.count(projection, filters),
  ]);
  return {
    items,
    total,
    limit,
    offset,
    has_more,
    next_cursor: has_more && last ? cursorOf(last, sort) : null,
  };
}

interface Items<D extends JsonObject, T> {
  readonly items: readonly T[];
  /** Of the last item. */
  readonly last: KeptDocument<D> | undefined;
  readonly has_more: boolean;
}

/** Reads a page slice by slice; of those before the last, nothing is held but what is shown. */
async function readItems<D extends JsonObject, T>(
  readModel: ReadModel,
  projection: Projection<D>,
  { filters, sort, limit, ...from }: Query,
  show: (document: D) => T,
  slice: number,
): Promise<Items<D, T>> {
  const items: T[] = [];
  let last: KeptDocument<D> | undefined;
  for (let place: Pick<Query, 'offset' | 'after'> = from; ;) {
    const missing = limit - items.length;
    // One more than is shown tells whether there is more.
    const asked = Math.min(slice, missing + 1);
    const found = await readModel.find(projection, { filters, sort, limit: asked, ...place });
    const shown = found.slice(0, missing);
    for (const { document } of shown) items.push(show(document));
    last = shown.at(-1) ?? last;
    const has_more = found.length > missing;
    if (has_more || found.length < asked || last === undefined) return { items, last, has_more };
    place = { after: placeOf(last, sort) };
  }
}

/** A page on which nothing can be. */
export function emptyPage<T>({ limit, offset }: PageQuery): Page<T> {
  return { items: [], total: 0, limit, offset, has_more: false, next_cursor: null };
}

/** What goes on behind a document in a list of this order. */
export function cursorOf(kept: KeptDocument, sort: readonly Sort[]): string {
  const { values, key } = placeOf(kept, sort);
  return Buffer.from(JSON.stringify([orderOf(sort), values, key])).toString('base64url');
}

function placeOf(
  { key, document }: KeptDocument,
  sort: readonly Sort[],
): NonNullable<Query['after']> {
  // A view is sorted by fields that hold no objects or lists.
  const values = sort.map(({ field }) => (document[field] ?? null) as string | number | null);
  return { values, key };
}

/** A place in one order is none in another. */
const orderOf = (sort: readonly Sort[]): string =>
  sort.map(({ field, direction }) => `${field} ${direction}`).join();

/** What a value of a field is in JSON; by a list nothing is sorted. */
const typeOf: Readonly<Record<FieldKind, string>> = {
  text: 'string',
  number: 'number',
  boolean: 'boolean',
  'text-list': '',
};

/** The place that a cursor means. @throws HttpError 400 for one of another list */
export function parseCursor(
  cursor: string,
  sort: readonly Sort[],
  { fields }: { readonly fields: Readonly<Record<string, FieldKind>> },
): NonNullable<Query['after']> {
  try {
    const text = Buffer.from(cursor, 'base64url').toString();
    const [order, values, key] = JSON.parse(text) as unknown[];
    // Of another kind than its field holds, it is a place in no order.
    const fits = (value: unknown, index: number): boolean =>
      value === null || typeof value === typeOf[fields[sort[index]?.field ?? ''] ?? 'text-list'];
    if (order === orderOf(sort) && Array.isArray(values) && values.length === sort.length) {
      if (values.every(fits) && typeof key === 'string') return { values, key };
    }
  } catch {
    // Falls through to the refusal: whatever it is, it is no cursor of ours.
  }
  throw badRequest([{ field: 'cursor', issue: 'is not a cursor of this list' }]);
}
