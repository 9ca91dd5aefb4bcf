import { setImmediate as nextTurn, setTimeout as after } from 'node:timers/promises';
import type { ClientSession, Db } from 'mongodb';
import { BEGINNING } from '../../domain/event-store.ts';
import { cutDocument } from '../../projections/cut-document.ts';
import type { Filter, Listed, ListQuery, Projection } from '../../projections/read-model.ts';
import { isWithoutTransactions, isWorthAnotherTransaction } from './failures.ts';
import { CHECKPOINTS, type StoredCheckpoint, type StoredDocument } from './layout.ts';
import { LargeTexts } from './large-texts.ts';
import { conditionOf, pageOf, sortOf } from './queries.ts';

/**
 * A page of a list, its total and its position as they were at one instant.
 *
 * The three are read one after the other, with the checkpoint before and after them. Where it has not moved, and no
 * documents beyond it were being written, nothing has changed between: a view changes with its checkpoint alone. Else
 * they are read again. Where a view never stands still for that long, a transaction with the read concern `snapshot`
 * reads them, which a replica set and a sharded cluster have.
 */

/** How often it is read again before a transaction is used, and where there are none. */
const TRIES = 3;
const MOST_TRIES = 20;

/** Between tries: a batch takes the writer some milliseconds. */
const PAUSE = 10;

/** Documents that come from the server at a time: each may have megabytes. */
const AT_ONCE = 50;

/** What the reading needs of the read model. */
export interface ListParts {
  readonly db: Db;
  /** The generation's. */
  readonly collection: string;
  readonly projection: Projection;
  /** Milliseconds for each query; told to the server. */
  readonly maxTimeMS: number;
  /** How many documents pass filters, outside of a transaction. */
  readonly count: (filters: readonly Filter[]) => Promise<number>;
  /** Starts a session for a transaction; null where the server has none. */
  readonly startSession: () => Promise<ClientSession | null>;
  readonly giveUpTransactions: (cause: unknown) => void;
}

/**
 * Reads a list. Inside of `run`.
 * @throws the driver's errors
 */
export async function readList(parts: ListParts, query: ListQuery): Promise<Listed> {
  for (let attempt = 1; ; attempt += 1) {
    const before = await checkpointOf(parts);
    const read = await readOnce(parts, query);
    const now = await checkpointOf(parts);
    const isStill = before.position === now.position && !before.isWriting && !now.isWriting;
    if (isStill || query.isLoose === true) return { ...read, position: before.position };
    if (attempt >= TRIES) {
      const listed = await inTransaction(parts, query);
      if (listed !== null) return listed;
    }
    // A writer that died amid its batch has left its mark until the next one begins; nothing changes meanwhile.
    if (attempt >= MOST_TRIES) return { ...read, position: before.position };
    await after(PAUSE);
  }
}

/** null where there are no transactions, where this one failed, and where a batch is half written. */
async function inTransaction(parts: ListParts, query: ListQuery): Promise<Listed | null> {
  const session = await parts.startSession();
  if (session === null) return null;
  try {
    session.startTransaction({ readConcern: { level: 'snapshot' }, readPreference: 'primary' });
    const { position, isWriting } = await checkpointOf(parts, session);
    const read = await readOnce(parts, query, session);
    await session.commitTransaction();
    return isWriting ? null : { ...read, position };
  } catch (error) {
    if (session.inTransaction()) await session.abortTransaction();
    // A collection that was made a moment ago is in no snapshot yet.
    if (isWorthAnotherTransaction(error)) return null;
    if (!isWithoutTransactions(error)) throw error;
    parts.giveUpTransactions(error);
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

async function readOnce(
  parts: ListParts,
  query: ListQuery,
  session?: ClientSession,
): Promise<Omit<Listed, 'position'>> {
  const page = await readPage(parts, query, session);
  const { counted = query.filters } = query;
  return { ...page, total: counted === null ? null : await countOf(parts, counted, session) };
}

async function countOf(
  { db, collection, projection, maxTimeMS, count }: ListParts,
  filters: readonly Filter[],
  session?: ClientSession,
): Promise<number> {
  // The server's own number, which `count` may take, is none of a snapshot.
  if (session === undefined) return count(filters);
  const condition = conditionOf(projection, filters);
  return db
    .collection<StoredDocument>(collection)
    .countDocuments(condition, { session, maxTimeMS });
}

async function readPage(
  { db, collection, projection, maxTimeMS }: ListParts,
  query: ListQuery,
  session?: ClientSession,
): Promise<Pick<Listed, 'documents' | 'hasMore'>> {
  const { limit, cut, mostBytes = Infinity } = query;
  // To MongoDB a limit of 0 means none.
  const cursor = db.collection<StoredDocument>(collection).find(pageOf(projection, query), {
    sort: sortOf(projection, query),
    skip: query.offset ?? 0,
    // One more than is wanted tells whether there are more.
    limit: Math.max(0, limit) + 1,
    batchSize: Math.min(Math.max(0, limit) + 1, AT_ONCE),
    projection: { _pos: 1, d: 1, parts: 1 },
    maxTimeMS,
    allowDiskUse: true,
    ...(session !== undefined && { session }),
  });
  const texts = new LargeTexts(db, collection, session);
  const documents: { readonly key: string; readonly text: string }[] = [];
  let bytes = 0;
  try {
    for await (const row of cursor) {
      if (documents.length >= limit) return { documents, hasMore: true };
      const [whole] = await texts.whole([row]);
      if (whole === undefined) continue;
      const stored = whole.d ?? 'null';
      const text = cut === undefined ? stored : cutDocument(stored, cut);
      bytes += Buffer.byteLength(text);
      if (bytes > mostBytes && documents.length > 0) return { documents, hasMore: true };
      documents.push({ key: whole._id, text });
      // To cut a large one takes milliseconds: others have their turn between.
      if (text !== stored) await nextTurn();
    }
  } finally {
    await cursor.close();
  }
  return { documents, hasMore: false };
}
