import type {
  AnyBulkWriteOperation,
  ClientSession,
  Collection,
  Db,
  WriteConcernSettings,
} from 'mongodb';
import type { JsonObject } from '../../domain/json.ts';
import type { Projection, ViewWriter } from '../../projections/read-model.ts';
import { splitIntoParts } from './document-parts.ts';
import { duplicateStatementsOf } from './driver-errors.ts';
import { type StoredDocument, fieldsOf } from './layout.ts';

type WrittenDocument = Parameters<ViewWriter['write']>[0]['documents'][number];

/** A document to write: its JSON for the row, or its parts if it is too large. */
export type PreparedDocument = WrittenDocument & {
  readonly text: string | null;
  readonly parts: readonly string[] | null;
  /** Whether it is inserted, because it had no row when it was looked up. */
  readonly isNew: boolean;
};

/** The most attempts of a write that collides with other writers. */
const MAX_ATTEMPTS = 4;

/**
 * The latest document per key, ready to be written. Without this, an unordered write could leave an earlier one.
 * @param missing keys that had no row when they were looked up
 */
export function prepare(
  documents: readonly WrittenDocument[],
  missing: ReadonlySet<string>,
): readonly PreparedDocument[] {
  const latest = new Map<string, WrittenDocument>();
  for (const one of documents) {
    const known = latest.get(one.key);
    if (known === undefined || known.position < one.position) latest.set(one.key, one);
  }
  return Array.from(latest.values(), (written) => {
    // A delete needs the server's clock, which an insert cannot set.
    if (written.document === null) return { ...written, text: null, parts: null, isNew: false };
    const isNew = written.isFirst === true || missing.has(written.key);
    const text = JSON.stringify(written.document);
    const parts = splitIntoParts(text);
    return { ...written, text: parts === null ? text : null, parts, isNew };
  });
}

/**
 * Writes the rows of one generation, in one bulk write. Use inside `run`.
 *
 * A document that had no row is inserted, which costs a server a fraction of an upsert. All others are written by
 * upserts that are guarded by the stored position, as are documents whose row has appeared since.
 */
export class RowWrites {
  readonly #rows: Collection<StoredDocument>;
  readonly #projection: Projection;

  /** @param collection name of the generation's collection */
  constructor(db: Db, collection: string, projection: Projection) {
    this.#rows = db.collection<StoredDocument>(collection);
    this.#projection = projection;
  }

  /**
   * Writes each document that is not stored yet, or only at an earlier position. If the stored position is the same or
   * later, an insert fails on the key, and so does a guarded upsert, whose filter matches nothing. The stored position
   * is checked before such a failure is ignored, as the failure may have another cause: two concurrent inserts of which
   * the later one was rejected, or another unique index.
   */
  async write(
    documents: readonly PreparedDocument[],
    writeConcern?: WriteConcernSettings,
  ): Promise<void> {
    let remaining = documents;
    for (let attempt = 1; remaining.length > 0; attempt += 1) {
      try {
        await this.#rows.bulkWrite(this.#statements(remaining), {
          ordered: false,
          ...(writeConcern && { writeConcern }),
        });
        return;
      } catch (error) {
        const refused = duplicateStatementsOf(error);
        if (refused === null) throw error;
        const collided = remaining.filter((_, index) => refused.has(index));
        remaining = await this.outdated(collided);
        if (remaining.length > 0 && attempt >= MAX_ATTEMPTS) throw error;
      }
    }
  }

  /**
   * Writes documents in a session's transaction, which ends with any error.
   * @throws MongoBulkWriteError with the code of a duplicate key if a row exists at the same or a later position
   */
  async writeIn(session: ClientSession, documents: readonly PreparedDocument[]): Promise<void> {
    if (documents.length === 0) return;
    // Writes are ordered by default, so nothing more is sent after the error that ended the transaction.
    const firstNew = [...documents].sort((a, b) => Number(b.isNew) - Number(a.isNew));
    await this.#rows.bulkWrite(this.#statements(firstNew), { session });
  }

  /** The documents that are not stored yet, or only at an earlier position, to be written by guarded upserts. */
  async outdated(
    documents: readonly PreparedDocument[],
    session?: ClientSession,
  ): Promise<readonly PreparedDocument[]> {
    if (documents.length === 0) return [];
    const rows = await this.#rows
      .find(
        { _id: { $in: documents.map(({ key }) => key) } },
        { projection: { _pos: 1 }, batchSize: documents.length, ...(session && { session }) },
      )
      .toArray();
    const positions = new Map(rows.map((row) => [row._id, row._pos]));
    return documents
      .filter(({ key, position }) => {
        const there = positions.get(key);
        return there === undefined || there < position;
      })
      .map((one) => ({ ...one, isNew: false }));
  }

  #statements(documents: readonly PreparedDocument[]): AnyBulkWriteOperation<StoredDocument>[] {
    return documents.map((one) => {
      if (one.document === null) return guardedDelete(one);
      const content = this.#contentOf(one, one.document);
      return one.isNew
        ? { insertOne: { document: { _id: one.key, ...content } } }
        : guardedUpsert(one, content);
    });
  }

  #contentOf(
    { position, text, parts }: PreparedDocument,
    document: JsonObject,
  ): Omit<StoredDocument, '_id'> {
    return {
      _pos: position,
      live: true,
      ...(parts === null ? { d: text ?? '' } : { parts: parts.length }),
      f: fieldsOf(this.#projection, document),
    };
  }
}

function guardedUpsert(
  { key, position, parts }: PreparedDocument,
  content: Omit<StoredDocument, '_id'>,
): AnyBulkWriteOperation<StoredDocument> {
  const update = {
    $set: content,
    $unset: {
      gone: '' as const,
      ...(parts === null ? { parts: '' as const } : { d: '' as const }),
    },
  };
  return { updateOne: { filter: { _id: key, _pos: { $lt: position } }, update, upsert: true } };
}

function guardedDelete({ key, position }: PreparedDocument): AnyBulkWriteOperation<StoredDocument> {
  const update = {
    $set: { _pos: position, live: false },
    $unset: { d: '' as const, f: '' as const, parts: '' as const },
    $currentDate: { gone: true as const },
  };
  return { updateOne: { filter: { _id: key, _pos: { $lt: position } }, update, upsert: true } };
}
