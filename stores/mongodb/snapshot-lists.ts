import { setImmediate as nextTurn, setTimeout as after } from 'node:timers/promises';
import type { ClientSession, Db } from 'mongodb';
import { BEGINNING } from '../../domain/event-store.ts';
import { cutDocument } from '../../projections/cut-document.ts';
import type { Filter, Listed, ListQuery, Projection } from '../../projections/read-model.ts';
import type { MongoConnection } from './connection.ts';
import { isTransactionUnsupported, isTransientTransactionError } from './driver-errors.ts';
import { CHECKPOINTS, STORED, type StoredCheckpoint, type StoredDocument } from './layout.ts';
import { DocumentParts } from './document-parts.ts';
import { conditionOf, pageOf, sortOf } from './queries.ts';

/**
 * A page of a list with its total and position, all of one instant.
 *
 * The checkpoint is read before and after. If it has not moved and no writer was beyond it, nothing changed in between,
 * as a view changes only with its checkpoint. Otherwise the read is repeated, and finally done in a `snapshot`
 * transaction where the server has them.
 */

/** Attempts before a transaction is used, and in all. */
const ATTEMPTS_BEFORE_TRANSACTION = 3;
const MAX_ATTEMPTS = 20;

/** Milliseconds between attempts; a batch takes the writer about that long. */
const RETRY_PAUSE_MS = 10;

/** Documents per server batch; each may have megabytes. */
const BATCH_SIZE = 50;

/** The source of a list. */
export interface ListParts {
  readonly db: Db;
  /** Name of the generation's collection. */
  readonly collection: string;
  readonly projection: Projection;
  readonly connection: MongoConnection;
  /** Counts documents that pass filters, outside a transaction. */
  readonly count: (filters: readonly Filter[]) => Promise<number>;
}

/** Reads a list. Call inside `run`. @throws the driver's errors */
export async function readList(parts: ListParts, query: ListQuery): Promise<Listed> {
  for (let attempt = 1; ; attempt += 1) {
    const before = await checkpointOf(parts);
    const read = await readOnce(parts, query);
    const now = await checkpointOf(parts);
    const isStill = before.position === now.position && !before.isWriting && !now.isWriting;
    if (isStill || query.isLoose === true) return { ...read, position: before.position };
    if (attempt >= ATTEMPTS_BEFORE_TRANSACTION) {
      const listed = await inTransaction(parts, query);
      if (listed !== null) return listed;
    }
    // A writer that died within its batch leaves its mark until the next writer begins. Nothing changes in the meantime.
    if (attempt >= MAX_ATTEMPTS) return { ...read, position: before.position };
    await after(RETRY_PAUSE_MS);
  }
}

/** null without transactions, after a failed one, and while a batch is half written. */
async function inTransaction(parts: ListParts, query: ListQuery): Promise<Listed | null> {
  const { connection } = parts;
  if (!(await connection.hasTransactions())) return null;
  const session = connection.startSession();
  try {
    session.startTransaction({ readConcern: { level: 'snapshot' }, readPreference: 'primary' });
    const { position, isWriting } = await checkpointOf(parts, session);
    const read = await readOnce(parts, query, session);
    await session.commitTransaction();
    return isWriting ? null : { ...read, position };
  } catch (error) {
    if (session.inTransaction()) await session.abortTransaction();
    // A new collection is in no snapshot yet.
    if (isTransientTransactionError(error)) return null;
    if (!isTransactionUnsupported(error)) throw error;
    connection.giveUpTransactions(error);
    return null;
  } finally {
    await session.endSession();
  }
}

async function checkpointOf(
  { db, collection }: ListParts,
  session?: ClientSession,
): Promise<{ readonly position: string; readonly isWriting: boolean }> {
  const stored = await db
    .collection<StoredCheckpoint>(CHECKPOINTS)
    .findOne({ _id: collection }, session === undefined ? {} : { session });
  return { position: stored?.position ?? BEGINNING, isWriting: stored?.writing !== undefined };
}

/** Reads page and total: concurrently, or one after the other in a transaction, which takes one statement at a time. */
async function readOnce(
  parts: ListParts,
  query: ListQuery,
  session?: ClientSession,
): Promise<Omit<Listed, 'position'>> {
  const { counted = query.filters } = query;
  const count = async (): Promise<number | null> =>
    counted === null ? null : countOf(parts, counted, session);
  if (session !== undefined) {
    const page = await readPage(parts, query, session);
    return { ...page, total: await count() };
  }
  const [page, total] = await Promise.all([readPage(parts, query), count()]);
  return { ...page, total };
}

async function countOf(
  { db, collection, projection, connection, count }: ListParts,
  filters: readonly Filter[],
  session?: ClientSession,
): Promise<number> {
  // `count` may use the server's own number, which belongs to no snapshot.
  if (session === undefined) return count(filters);
  const condition = conditionOf(projection, filters);
  return db
    .collection<StoredDocument>(collection)
    .countDocuments(condition, { session, maxTimeMS: connection.maxTimeMS });
}

async function readPage(
  { db, collection, projection, connection }: ListParts,
  query: ListQuery,
  session?: ClientSession,
): Promise<Pick<Listed, 'documents' | 'hasMore'>> {
  const { limit, cut, mostBytes = Infinity } = query;
  // MongoDB takes a limit of 0 for none.
  const cursor = db.collection<StoredDocument>(collection).find(pageOf(projection, query), {
    sort: sortOf(projection, query),
    skip: query.offset ?? 0,
    // One document more than requested shows whether there are more.
    limit: Math.max(0, limit) + 1,
    batchSize: Math.min(Math.max(0, limit) + 1, BATCH_SIZE),
    projection: STORED,
    maxTimeMS: connection.maxTimeMS,
    allowDiskUse: true,
    ...(session !== undefined && { session }),
  });
  const texts = new DocumentParts(db, collection, session);
  const documents: { readonly key: string; readonly text: string }[] = [];
  let bytes = 0;
  try {
    for await (const row of cursor) {
      if (documents.length >= limit) return { documents, hasMore: true };
      const [whole] = await texts.complete([row]);
      if (whole === undefined) continue;
      const stored = whole.d ?? 'null';
      const text = cut === undefined ? stored : cutDocument(stored, cut);
      bytes += Buffer.byteLength(text);
      if (bytes > mostBytes && documents.length > 0) return { documents, hasMore: true };
      documents.push({ key: whole._id, text });
      // Cutting a large document takes milliseconds, so others get a turn.
      if (text !== stored) await nextTurn();
    }
  } finally {
    await cursor.close();
  }
  return { documents, hasMore: false };
}
