import type { Binary, IndexDescription } from 'mongodb';
import type { Landmark, Position } from '../../domain/event-store.ts';
import { type JsonObject, isJsonObject } from '../../domain/json.ts';
import type { FieldKind, ViewDocument, Projection } from '../../projections/read-model.ts';

/**
 * The layout of views in MongoDB.
 *
 * - `<name>_s<schema>_g<generation>`: the documents of one generation. Collections are never renamed, as that breaks
 *   open cursors.
 * - `_views`: which generation is read, per projection and schema.
 * - `_checkpoints`: how far each generation is, and the largest fence of its writers.
 *
 * A document is kept as a JSON string, so that any key (with dots or `$`) and any number survives. The queried fields
 * are stored beside it, for filters, sorts and indexes. JSON too large for a row goes to `<collection>_parts`.
 */

/** A document of a view, or the tombstone of one. */
export interface StoredDocument {
  readonly _id: string;
  /** The last event applied. Of fixed width, so it compares as a string. */
  readonly _pos: Position;
  /** False for a tombstone. First in every index, so that counts need only the index. */
  readonly live: boolean;
  /** The document as JSON. */
  readonly d?: string;
  /** Number of parts, where the JSON is too large for the row; then `d` is missing. */
  readonly parts?: number;
  /** The queried fields; null if the document lacks one. */
  readonly f?: Readonly<Record<string, StoredField>>;
  /** When it was deleted, by the server's clock. */
  readonly gone?: Date;
}

/** The fields that make up a document, as the driver's projection. */
export const STORED = { _pos: 1, d: 1, parts: 1 } as const;

type StoredField = string | number | boolean | null | readonly string[];

/** A generation's place in the log. */
export interface StoredCheckpoint {
  /** The name of the generation's collection. */
  readonly _id: string;
  readonly view: string;
  readonly generation: number;
  readonly position: Position;
  readonly fence: number;
  /** An event that the generation was built from; missing in checkpoints of older releases. */
  readonly landmark?: Landmark;
  /** Set while the writer writes documents beyond the position: how far it will move. */
  readonly writing?: Position;
  /** Written only to wait for the journal. */
  readonly settled?: boolean;
  /** The session of the last writer's transactions. */
  readonly session?: Binary;
}

/** Which generation of a view is read. */
export interface StoredPointer {
  readonly _id: string;
  readonly generation: number;
}

/** The two collections that belong to no view. */
export const VIEWS = '_views';
export const CHECKPOINTS = '_checkpoints';

/**
 * How long tombstones are kept. They protect against a writer that was paused between its check and its write, whose
 * connection does not outlive a minute.
 */
const TOMBSTONE_SECONDS = 24 * 60 * 60;

/** The name of a projection's pointer, and the start of its collections' names. */
export function viewOf(projection: Projection): string {
  return `${projection.name}_s${projection.schema}`;
}

/** The collection of one generation. */
export function collectionOf(projection: Projection, generation: number): string {
  return `${viewOf(projection)}_g${generation}`;
}

/** The path of a queried field. @throws TypeError for a field that the projection does not declare */
export function pathOf(projection: Projection, field: string): string {
  if (!Object.hasOwn(projection.fields, field)) {
    throw new TypeError(`the projection ${projection.name} does not declare the field ${field}`);
  }
  if (field.includes('.') || field.startsWith('$')) {
    throw new TypeError(`a queried field cannot be called ${field}`);
  }
  return `f.${field}`;
}

/**
 * A view's indexes: the declared ones, each behind `live` and followed by the key, and one that counts and expires
 * tombstones. Covered fields come after the key and do not affect the order. They save fetching every document when a
 * list filters on more than the index's own fields.
 * @throws TypeError for an index over two lists, which MongoDB refuses with the first document
 */
export function indexesOf(projection: Projection): IndexDescription[] {
  const declared = projection.indexes.map((fields, place): IndexDescription => {
    const covered = projection.covered?.[place] ?? [];
    const all = new Set([...fields, ...covered]);
    const lists = [...all].filter((field) => projection.fields[field] === 'text-list');
    if (lists.length > 1) {
      throw new TypeError(`the projection ${projection.name} has an index over two lists`);
    }
    const key: Record<string, 1> = { live: 1 };
    for (const field of fields) key[pathOf(projection, field)] = 1;
    key['_id'] = 1;
    for (const field of covered) key[pathOf(projection, field)] = 1;
    // The index leaves out the documents of `default`, because no query searches for them with it.
    const isOfNamespaces = fields[0] === 'namespace' && projection.sparse?.includes('namespace');
    return isOfNamespaces === true
      ? { key, partialFilterExpression: { [pathOf(projection, 'namespace')]: { $gt: '' } } }
      : { key };
  });
  return [...declared, { key: { gone: 1 }, sparse: true, expireAfterSeconds: TOMBSTONE_SECONDS }];
}

/** The queried fields of a document, each with a value that compares as its kind. */
export function fieldsOf(
  projection: Projection,
  document: JsonObject,
): Readonly<Record<string, StoredField>> {
  const entries = Object.entries(projection.fields);
  return Object.fromEntries(
    entries.map(([field, kind]) => [field, storedField(document[field], kind)]),
  );
}

/** A kept document as the port gives it. */
export function toKeptDocument<D extends JsonObject>(row: StoredDocument): ViewDocument<D> {
  return { key: row._id, position: row._pos, document: parseDocument(row) as D };
}

/** Parses a row's document. */
export function parseDocument(row: StoredDocument): JsonObject {
  const document: unknown = JSON.parse(row.d ?? 'null');
  if (!isJsonObject(document)) throw new TypeError(`the document ${row._id} is not an object`);
  return document;
}

/** A value of another kind than declared becomes null, as no filter could match it. */
function storedField(value: unknown, kind: FieldKind): StoredField {
  switch (kind) {
    case 'text':
      return typeof value === 'string' ? value : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'text-list':
      return Array.isArray(value) ? value.filter((part) => typeof part === 'string') : null;
  }
}
