import { Type } from '@sinclair/typebox';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { writeJson } from '../../domain/exact-numbers.ts';
import type { Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { NAMESPACE_PATTERN } from '../../domain/namespaces/namespace.ts';
import type {
  Cut,
  FieldKind,
  Filter,
  ViewDocument,
  ListedDocument,
  ListQuery,
  Projection,
  Query,
  ReadModel,
  Sort,
} from '../../projections/read-model.ts';
import type { EndpointResponse } from '../endpoint.ts';
import { badRequest, type HttpError } from '../errors.ts';

/** For admins: shows only this namespace. Other callers may name only their own. */
export const namespaceParameter = Type.Optional(
  Type.String({
    pattern: NAMESPACE_PATTERN,
    description: 'shows only this namespace; agents without `admin` may name only their own',
  }),
);

/** Query parameters of every list. */
export const pageParameters = {
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  offset: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }),
  cursor: Type.Optional(Type.String({ maxLength: 2000 })),
  after: Type.Optional(Type.String({ maxLength: 200 })),
  namespace: namespaceParameter,
};

interface PageQuery {
  readonly limit: number;
  readonly offset: number;
  readonly cursor?: string;
}

/** The most bytes of a list's items. With its other fields, a response has at most 4 MiB. */
const MAX_ITEM_BYTES = 4 * 1024 * 1024 - 16 * 1024;

/**
 * The most bytes of documents that are read for a page. A list shows only a part of each document, and only a small
 * part of a run.
 */
const MAX_READ_BYTES = 8 * 1024 * 1024;

/** Characters of documents that are parsed and serialized before other requests get a turn. */
const SLICE_CHARACTERS = 256 * 1024;

/** Lists leave out payloads with more bytes than this. A single record shows the whole payload. */
export const MAX_LISTED_BYTES = 64 * 1024;

/** Leaves out large payloads. */
export const cutPayload: Cut = {
  maxBytes: MAX_LISTED_BYTES,
  values: [{ path: ['payload'], preview: false }],
};

type Place<D extends JsonObject> = Pick<ViewDocument<D>, 'key' | 'document'>;

/** A page of a view. */
interface ReadPage<D extends JsonObject> {
  /** The items, each as JSON. */
  readonly items: readonly string[];
  /** The place of the last item; undefined if there are no items. */
  readonly last: Place<D> | undefined;
  readonly hasMore: boolean;
  /** null if nothing was counted. */
  readonly total: number | null;
  readonly position: Position;
}

/**
 * Reads a page of a view and its total from one snapshot. The page ends early before its items exceed {@link
 * MAX_ITEM_BYTES}.
 * @param show returns the part of a document that a list shows
 */
export async function readPage<D extends JsonObject>(
  readModel: ReadModel,
  projection: Projection<D>,
  query: ListQuery,
  show: (document: D) => unknown,
): Promise<ReadPage<D>> {
  const listed = await readModel.list(projection, { mostBytes: MAX_READ_BYTES, ...query });
  const { total, position } = listed;
  const items = new ItemList();
  let last: Place<D> | undefined;
  for (const [number, slice] of slicesOf(listed.documents).entries()) {
    if (number > 0) await nextTurn();
    const documents = slice.map(({ text }) => JSON.parse(text) as D);
    const shown = await Promise.all(documents.map(show));
    for (const [index, { key }] of slice.entries()) {
      if (!items.add(shown[index])) {
        return { items: items.json, last, hasMore: true, total, position };
      }
      last = { key, document: documents[index] as D };
    }
  }
  return { items: items.json, last, hasMore: listed.hasMore, total, position };
}

/** The items of a list as JSON, as many as fit into a response. The first item is always included. */
export class ItemList {
  readonly json: string[] = [];
  #bytes = 0;

  /** @returns false if the item did not fit */
  add(item: unknown): boolean {
    const json = writeJson(item);
    this.#bytes += Buffer.byteLength(json) + 1;
    if (this.json.length > 0 && this.#bytes > MAX_ITEM_BYTES) return false;
    this.json.push(json);
    return true;
  }
}

/** Groups of about {@link SLICE_CHARACTERS}. */
function slicesOf(documents: readonly ListedDocument[]): readonly (readonly ListedDocument[])[] {
  const slices: ListedDocument[][] = [];
  let characters = Infinity;
  for (const document of documents) {
    if (characters > SLICE_CHARACTERS) {
      slices.push([]);
      characters = 0;
    }
    slices.at(-1)?.push(document);
    characters += document.text.length;
  }
  return slices;
}

/** The JSON of a response with a list. @param rest its other fields, at least one */
export function listJson(name: string, items: readonly string[], rest: object): string {
  return `{"${name}":[${items.join(',')}],${JSON.stringify(rest).slice(1)}`;
}

/**
 * Answers with a page of a view: items, total and position are of one snapshot.
 * @param list.cut the parts that are left out of large documents; default: none
 * @param show returns the part of a document that the list shows
 */
export async function listPage<D extends JsonObject>(
  readModel: ReadModel,
  projection: Projection<D>,
  list: Pick<ListQuery, 'filters' | 'sort' | 'cut'>,
  { limit, offset, cursor }: PageQuery,
  show: (document: D) => unknown,
): Promise<EndpointResponse> {
  const { sort } = list;
  const start = cursor === undefined ? { offset } : behindCursor(cursor, sort, projection);
  const page = await readPage(readModel, projection, { ...list, limit, ...start }, show);
  const { items, last, hasMore: has_more, total, position } = page;
  const next_cursor = has_more && last ? cursorOf(last, sort) : null;
  const json = listJson('items', items, { total, limit, offset, has_more, next_cursor });
  return { json, readPosition: position };
}

/** The response if no item can match: an empty page. */
export function emptyPage({ limit, offset }: PageQuery): EndpointResponse {
  return { body: { items: [], total: 0, limit, offset, has_more: false, next_cursor: null } };
}

/**
 * The keys of all documents that match, in pages. Each page continues after the last key, even if views change in the
 * meantime.
 */
export async function* keyPages(
  readModel: ReadModel,
  projection: Projection,
  filters: readonly Filter[],
  limit = 200,
): AsyncGenerator<readonly string[]> {
  let start: Pick<Query, 'after'> = {};
  for (;;) {
    const page = await readModel.find(projection, { filters, sort: [], limit, ...start });
    yield page.map(({ key }) => key);
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    start = { after: { values: [], key: last.key } };
  }
}

/** A cursor that continues after a document in a list of this order. */
export function cursorOf({ key, document }: Place<JsonObject>, sort: readonly Sort[]): string {
  const values = sort.map(({ field }) => document[field] ?? null);
  return Buffer.from(JSON.stringify([orderOf(sort), values, key])).toString('base64url');
}

/** A cursor is valid for one order only. */
const orderOf = (sort: readonly Sort[]): string =>
  sort.map(({ field, direction }) => `${field} ${direction}`).join();

/** JSON types by kind of field, without lists, because no query sorts by a list. */
const jsonTypes: Readonly<Record<FieldKind, string>> = {
  text: 'string',
  number: 'number',
  boolean: 'boolean',
  'text-list': '',
};

/**
 * The place from which a query continues. Without a cursor, it starts at the first document.
 * @throws HttpError 400 for a cursor of another list
 */
export function behindCursor(
  cursor: string | undefined,
  sort: readonly Sort[],
  { fields }: { readonly fields: Readonly<Record<string, FieldKind>> },
): Pick<Query, 'after'> {
  if (cursor === undefined) return {};
  try {
    const json = Buffer.from(cursor, 'base64url').toString();
    const [order, values, key] = JSON.parse(json) as unknown[];
    const hasType = (value: unknown, index: number): boolean =>
      value === null || typeof value === jsonTypes[fields[sort[index]?.field ?? ''] ?? 'text-list'];
    const isOfList = order === orderOf(sort) && Array.isArray(values);
    if (isOfList && values.length === sort.length && values.every(hasType)) {
      if (typeof key === 'string') return { after: { values, key } };
    }
  } catch {
    // Falls through to the error, because the string is not a cursor of this service.
  }
  throw invalidCursor();
}

export const invalidCursor = (): HttpError =>
  badRequest([{ field: 'cursor', issue: 'is not a cursor of this list' }]);
