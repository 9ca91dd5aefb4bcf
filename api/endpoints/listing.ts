import { Type } from '@sinclair/typebox';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { writeJson } from '../../domain/exact-numbers.ts';
import type { Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type {
  Cut,
  FieldKind,
  KeptDocument,
  ListedDocument,
  ListQuery,
  Projection,
  Query,
  ReadModel,
  Sort,
} from '../../projections/read-model.ts';
import type { Answer } from '../endpoint.ts';
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

/** Most bytes of a list's items, so that with the rest a response has no more than 4 MiB. */
export const MOST_BYTES = 4 * 1024 * 1024 - 16 * 1024;

/** Bytes of documents that are read for a page. What a list shows of one is less than that, of runs much less. */
const MOST_READ = 8 * 1024 * 1024;

/** Characters of documents that are parsed and written out again in one go: other requests come in between. */
const AT_ONCE = 256 * 1024;

/** Bytes over which a payload is left out of a list. A response with a single record has all of it. */
export const MOST_LISTED = 64 * 1024;

/** Cuts payloads that are large. */
export const cutPayload: Cut = {
  over: MOST_LISTED,
  values: [{ path: ['payload'], preview: false }],
};

/** A page of a view, and where it stands. */
export interface ReadPage<D extends JsonObject> {
  /** JSON, each. */
  readonly items: readonly string[];
  /** Of the last item; undefined where there are no items. */
  readonly last: Place<D> | undefined;
  readonly hasMore: boolean;
  /** null where nothing was counted. */
  readonly total: number | null;
  readonly position: Position;
}

interface Place<D extends JsonObject> {
  readonly key: string;
  readonly document: D;
}

/**
 * Reads a page of a view and its total from one snapshot. It ends early before its items have more than
 * {@link MOST_BYTES}, as JSON text in UTF-8.
 *
 * @param show what a list shows of a document
 */
export async function readPage<D extends JsonObject>(
  readModel: ReadModel,
  projection: Projection<D>,
  query: ListQuery,
  show: (document: D) => unknown,
): Promise<ReadPage<D>> {
  const listed = await readModel.list(projection, { mostBytes: MOST_READ, ...query });
  const { total, position } = listed;
  const items: string[] = [];
  const room = new Room();
  let last: Place<D> | undefined;
  for (const [number, some] of slicesOf(listed.documents).entries()) {
    if (number > 0) await nextTurn();
    const documents = some.map(({ text }) => JSON.parse(text) as D);
    const shown = await Promise.all(documents.map(show));
    for (const [index, { key }] of some.entries()) {
      const item = writeJson(shown[index]);
      if (!room.takes(item)) return { items, last, hasMore: true, total, position };
      items.push(item);
      last = { key, document: documents[index] as D };
    }
  }
  return { items, last, hasMore: listed.hasMore, total, position };
}

/** Counts the bytes of a list's items. The first fits, whatever its size. */
export class Room {
  #bytes = 0;

  /** Whether an item fits as well. @param item JSON */
  takes(item: string): boolean {
    const isFirst = this.#bytes === 0;
    this.#bytes += Buffer.byteLength(item) + 1;
    return isFirst || this.#bytes <= MOST_BYTES;
  }
}

/** As many items as have room in a response, as JSON. */
export function fitting(items: readonly unknown[]): readonly string[] {
  const room = new Room();
  const texts: string[] = [];
  for (const item of items) {
    const text = writeJson(item);
    if (!room.takes(text)) break;
    texts.push(text);
  }
  return texts;
}

/** Documents in groups of about {@link AT_ONCE} characters. */
function slicesOf(documents: readonly ListedDocument[]): readonly (readonly ListedDocument[])[] {
  const slices: ListedDocument[][] = [];
  let characters = Infinity;
  for (const document of documents) {
    if (characters > AT_ONCE) {
      slices.push([]);
      characters = 0;
    }
    slices.at(-1)?.push(document);
    characters += document.text.length;
  }
  return slices;
}

/** The text of a response with a list. @param rest its other fields, at least one */
export function listText(name: string, items: readonly string[], rest: object): string {
  return `{"${name}":[${items.join(',')}],${JSON.stringify(rest).slice(1)}`;
}

/**
 * Answers with a page of a view: its items, its total and its position are of one snapshot.
 *
 * @param asked.cut what is left out of large documents; default: nothing
 * @param show what the list shows of a document
 */
export async function listPage<D extends JsonObject>(
  readModel: ReadModel,
  projection: Projection<D>,
  asked: Pick<ListQuery, 'filters' | 'sort' | 'cut'>,
  page: PageQuery,
  show: (document: D) => unknown,
): Promise<Answer> {
  const { limit, offset, cursor } = page;
  const after = cursor === undefined ? null : parseCursor(cursor, asked.sort, projection);
  const place = after === null ? { offset } : { after };
  const read = await readPage(readModel, projection, { ...asked, limit, ...place }, show);
  const { items, last, hasMore: has_more, total, position } = read;
  const next_cursor = has_more && last ? cursorOf(last, asked.sort) : null;
  const text = listText('items', items, { total, limit, offset, has_more, next_cursor });
  return { body: null, text, readPosition: position };
}

/** A page on which nothing can be. */
export function emptyPage<T>({ limit, offset }: PageQuery): Page<T> {
  return { items: [], total: 0, limit, offset, has_more: false, next_cursor: null };
}

/** What goes on behind a document in a list of this order. */
export function cursorOf(
  kept: Pick<KeptDocument, 'key' | 'document'>,
  sort: readonly Sort[],
): string {
  const { values, key } = placeOf(kept, sort);
  return Buffer.from(JSON.stringify([orderOf(sort), values, key])).toString('base64url');
}

function placeOf(
  { key, document }: Pick<KeptDocument, 'key' | 'document'>,
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
