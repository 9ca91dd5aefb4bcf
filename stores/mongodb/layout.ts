import type { Binary, IndexDescription } from 'mongodb';
import type { Landmark, Position } from '../../domain/event-store.ts';
import { type JsonObject, isJsonObject } from '../../domain/json.ts';
import type { FieldKind, KeptDocument, Projection } from '../../projections/read-model.ts';

/**
 * How views are kept in MongoDB.
 *
 * - `<name>_s<schema>_g<generation>`: the documents of one generation. Nothing is ever renamed, as that
 *   breaks open cursors; a pointer says which generation is read.
 * - `_views`: that pointer, per projection and schema.
 * - `_checkpoints`: how far each generation is, and the largest fence that its writers had.
 *
 * A document is kept as JSON text, so that any key (with dots, with `$`) and any number comes back as it
 * was; the queried fields stand beside it, for filters, sorts and indexes. A text that is too large for a row is
 * kept in parts, in `<collection>_parts`.
 */

/** A document of a view, or the tombstone of one. */
export interface StoredDocument {
  readonly _id: string;
  /** The last event it has taken. Fixed-width text, so that it compares as text. */
  readonly _pos: Position;
  /** False for a tombstone. First in every index, so that counts come from the index alone. */
  readonly live: boolean;
  /** The document, as JSON text. */
  readonly d?: string;
  /** In how many parts its text is kept elsewhere, where it is too large for a row; then there is no `d`. */
  readonly parts?: number;
  /** The queried fields; each is there, null where the document has none. */
  readonly f?: Readonly<Record<string, StoredField>>;
  /** When it was deleted, by the server's clock. */
  readonly gone?: Date;
}

export type StoredField = string | number | boolean | null | readonly string[];

/** A generation's place in the log. */
export interface StoredCheckpoint {
  /** The name of the generation's collection. */
  readonly _id: string;
  readonly view: string;
  readonly generation: number;
  readonly position: Position;
  readonly fence: number;
  /** An event of the log that the generation was made of; what older releases have written lacks it. */
  readonly landmark?: Landmark;
  /** The writer has written documents beyond the position, or is about to: how far it will move. */
  readonly writing?: Position;
  /** Written only to wait for the journal. */
  readonly settled?: boolean;
  /** The session in which the last writer has its transactions, where it has any. */
  readonly session?: Binary;
}

/** Which generation of a view is read. */
export interface StoredPointer {
  readonly _id: string;
  readonly generation: number;
}

/** Names of the two collections that are not a view's. */
export const VIEWS = '_views';
export const CHECKPOINTS = '_checkpoints';

/**
 * How long tombstones are kept. One is needed only against a writer that was stopped between looking at
 * the checkpoint and writing, and goes on long after: a day is far more than any such pause, as its
 * connection does not outlive a minute.
 */
const TOMBSTONE_SECONDS = 24 * 60 * 60;

/** The name under which a projection's generations and its pointer are kept. */
export function viewOf(projection: Projection): string {
  return `${projection.name}_s${projection.schema}`;
}

/** The collection of one generation. */
export function collectionOf(projection: Projection, generation: number): string {
  return `${viewOf(projection)}_g${generation}`;
}

/**
 * Where a queried field is kept.
 * @throws TypeError for a field that the projection does not declare
 */
export function pathOf(projection: Projection, field: string): string {
  if (!Object.hasOwn(projection.fields, field)) {
    throw new TypeError(`the projection ${projection.name} does not declare the field ${field}`);
  }
  if (field.includes('.') || field.startsWith('$')) {
    throw new TypeError(`a queried field can't be called ${field}`);
  }
  return `f.${field}`;
}

/**
 * The indexes of a view: as declared, each behind `live` and with the key at its end, and the one that lets
 * tombstones be counted and expire. What is covered stands behind the key, where it leaves the order as it is: a list
 * or a total that asks for more than the index goes by would else fetch every document to look, a million for a task
 * of so many runs.
 *
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
    return { key };
  });
  const tombstones: IndexDescription = {
    key: { gone: 1 },
    sparse: true,
    expireAfterSeconds: TOMBSTONE_SECONDS,
  };
  return [...declared, tombstones];
}

/** The queried fields of a document, each with a value that compares as its kind. */
export function fieldsOf(
  projection: Projection,
  document: JsonObject,
): Readonly<Record<string, StoredField>> {
  return Object.fromEntries(
    Object.entries(projection.fields).map(([field, kind]) => [
      field,
      stored(document[field], kind),
    ]),
  );
}

/** A kept document as the port gives it. */
export function kept<D extends JsonObject>(row: StoredDocument): KeptDocument<D> {
  return { key: row._id, position: row._pos, document: parse(row) as D };
}

/** The document that a row holds. */
export function parse(row: StoredDocument): JsonObject {
  const document: unknown = JSON.parse(row.d ?? 'null');
  if (!isJsonObject(document)) throw new TypeError(`the document ${row._id} is not an object`);
  return document;
}

/** A value of another kind than declared is kept as none, as no filter could mean it. */
function stored(value: unknown, kind: FieldKind): StoredField {
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
