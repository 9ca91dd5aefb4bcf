import type { AnyBulkWriteOperation, ClientSession, Db, WriteConcernSettings } from 'mongodb';
import type { Position } from '../../domain/event-store.ts';
import type {
  ViewDocument,
  Projection,
  ViewWriter,
  WriterOptions,
} from '../../projections/read-model.ts';
import { Checkpoint } from './checkpoint.ts';
import type { MongoConnection } from './connection.ts';
import {
  duplicateStatementsOf,
  isTransactionTooLarge,
  isTransientTransactionError,
  isUnsupportedOption,
  isTransactionUnsupported,
} from './driver-errors.ts';
import { DocumentParts, splitIntoParts } from './document-parts.ts';
import {
  type StoredDocument,
  collectionOf,
  fieldsOf,
  indexesOf,
  toKeptDocument,
  parseDocument,
  viewOf,
} from './layout.ts';

type Batch = Parameters<ViewWriter['write']>[0];
type WrittenDocument = Batch['documents'][number];

/** A document to write: its JSON for the row, or its parts where it is too large. */
type PreparedDocument = WrittenDocument & {
  readonly text: string | null;
  readonly parts: readonly string[] | null;
};

/** Runs an operation and translates the driver's errors. `limit` in milliseconds; there is one by default. */
export type RunOperation = <T>(
  operation: string,
  act: (db: Db) => Promise<T>,
  limit?: number,
) => Promise<T>;

/** Attempts of a write that collides with other writers. */
const MAX_ATTEMPTS = 4;

/**
 * While nobody reads a generation, its documents need not be durable before the next batch. A standalone server's
 * journal is in order, so the checkpoint covers them. After a failover that would not hold: the new primary may have the
 * checkpoint without the documents.
 */
const UNJOURNALED: WriteConcernSettings = { w: 1, journal: false };

/**
 * The writer of one generation. Without transactions, a batch is three steps:
 *
 * 1. Check that the checkpoint is `from` and that no larger fence is known, else refuse. Mark that documents are being
 *    written, for readers of lists (see `snapshot-lists.ts`).
 * 2. Write each document only where the stored position is smaller. A delete leaves a tombstone with a position.
 * 3. Move the checkpoint in one conditional write: only from `from`, and with no larger fence.
 *
 * After a crash between 2 and 3 the same events are applied again. Documents that have them already are loaded with
 * their later position, so the projector skips those events, and the guard in 2 refuses the rest.
 *
 * An old writer that pauses between 1 and 2 does no harm either. Projections are pure, so its document for a key at a
 * position equals the new writer's. If the new writer is further, the guard refuses; otherwise it finds the document
 * already right. Step 3 then refuses the old writer.
 *
 * With transactions, 1 and 3 are one write at the start, so the second of two writers fails before it writes anything.
 */
export class MongoViewWriter implements ViewWriter {
  readonly #connection: MongoConnection;
  readonly #run: RunOperation;
  readonly #projection: Projection;
  readonly #options: WriterOptions;
  readonly #name: string;
  /** Keys with parts, as far as this writer has seen. */
  readonly #large = new Set<string>();
  /** The one session of its transactions, so that the next writer can end the last one. */
  #session: ClientSession | null = null;
  /**
   * Whether the server may still have a transaction open in the session, whose end got lost. It holds the checkpoint until
   * the session's next transaction begins, or for a minute. A plain write would end it too, but not with
   * `retryWrites=false`, which some compatible servers need.
   */
  #mayHaveOpenTransaction: boolean;
  #bulk: boolean;

  /** Use {@link open}. */
  constructor(
    connection: MongoConnection,
    run: RunOperation,
    projection: Projection,
    options: WriterOptions,
  ) {
    this.#connection = connection;
    this.#run = run;
    this.#projection = projection;
    this.#options = options;
    this.#name = collectionOf(projection, options.generation);
    this.#bulk = options.bulk;
    this.#mayHaveOpenTransaction = !options.bulk;
  }

  /** Registers the generation, and creates its indexes unless it is filled in bulk. */
  static async open(
    connection: MongoConnection,
    run: RunOperation,
    projection: Projection,
    options: WriterOptions,
  ): Promise<MongoViewWriter> {
    if (options.share !== undefined) {
      throw new TypeError(
        `${projection.name} cannot be filled in shares: its documents are in one place`,
      );
    }
    const writer = new MongoViewWriter(connection, run, projection, options);
    try {
      await run('open_writer', (db) => writer.#claim(db));
      // The tombstone index creates the collection, which transactions require.
      await writer.#makeIndexes(options.bulk);
      return writer;
    } catch (error) {
      await writer.close();
      throw error;
    }
  }

  checkpoint(): Promise<Position> {
    return this.#run('checkpoint', (db) => this.#checkpoint(db).position());
  }

  async load(keys: readonly string[]): ReturnType<ViewWriter['load']> {
    if (keys.length === 0) return new Map();
    const rows = await this.#run('load', async (db) => {
      const found = await this.#documents(db)
        .find({ _id: { $in: [...keys] } }, { projection: { f: 0 }, batchSize: keys.length })
        .toArray();
      for (const { _id, parts } of found) if (parts !== undefined) this.#large.add(_id);
      return this.#parts(db).complete(found);
    });
    return new Map(
      rows.map((row) => [
        row._id,
        { position: row._pos, document: row.live ? parseDocument(row) : null },
      ]),
    );
  }

  async write(batch: Batch): Promise<void> {
    const documents = latestPerKey(batch.documents).map(prepared);
    await this.#run('write', async (db) => {
      // Most batches of most views only move the checkpoint, which is atomic by itself.
      if (documents.length === 0 && !this.#mayHaveOpenTransaction)
        return this.#checkpoint(db).move(batch);
      await this.#writeParts(db, documents);
      const transactional = !this.#bulk && (await this.#connection.hasTransactions());
      if (!transactional || !(await this.#writeAtOnce(db, documents, batch))) {
        const checkpoint = this.#checkpoint(db);
        // Nobody reads a generation during a bulk fill.
        await (this.#bulk ? checkpoint.expect(batch.from) : checkpoint.announce(batch));
        await this.#writeGuarded(db, documents);
        await checkpoint.move(batch);
      }
      await this.#removeParts(db, documents);
    });
  }

  page(after: string | null, limit: number): Promise<readonly ViewDocument[]> {
    return this.#run('page', async (db) => {
      const condition = after === null ? { live: true } : { live: true, _id: { $gt: after } };
      const rows = await this.#documents(db)
        .find(condition, { sort: { _id: 1 }, limit, projection: { f: 0 }, batchSize: limit })
        .toArray();
      return (await this.#parts(db).complete(rows)).map((row) => toKeptDocument(row));
    });
  }

  count(): Promise<number> {
    return this.#run('count', (db) => this.#documents(db).countDocuments({ live: true }), Infinity);
  }

  async finish(): Promise<void> {
    if (!this.#bulk) return;
    await this.#makeIndexes(false);
    await this.#run('finish', (db) => this.#checkpoint(db).settle());
    this.#bulk = false;
  }

  /** Waits for nothing: the next writer ends a hanging transaction. */
  close(): Promise<void> {
    void this.#session?.endSession();
    this.#session = null;
    return Promise.resolve();
  }

  async #claim(db: Db): Promise<void> {
    if (await this.#connection.hasTransactions()) {
      this.#session = this.#connection.startSession();
    }
    const { generation } = this.#options;
    await this.#checkpoint(db).claim(viewOf(this.#projection), generation, this.#session?.id?.id);
  }

  /** Writes documents and checkpoint in one transaction. @returns false where the guarded way must be taken */
  async #writeAtOnce(
    db: Db,
    documents: readonly PreparedDocument[],
    batch: Batch,
  ): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      session.startTransaction();
      this.#mayHaveOpenTransaction = true;
      try {
        await this.#checkpoint(db).move(batch, session);
        const outdated = await this.#outdated(db, documents, session);
        if (outdated.length > 0) {
          await this.#documents(db).bulkWrite(
            outdated.map((one) => this.#guarded(one)),
            { session },
          );
        }
        await session.commitTransaction();
        this.#mayHaveOpenTransaction = false;
        return true;
      } catch (error) {
        if (session.inTransaction()) await session.abortTransaction();
        if (isTransactionUnsupported(error)) {
          this.#connection.giveUpTransactions(error);
          return false;
        }
        if (isTransactionTooLarge(error)) return false;
        if (!isTransientTransactionError(error)) throw error;
      }
    }
    return false;
  }

  /**
   * Guarded upserts: where the stored position is the same or later, the filter matches nothing and the insert fails on
   * the key. The stored position is checked before such a failure is ignored. It may also come from two concurrent
   * inserts, of which the refused one is later, or from another unique index.
   */
  async #writeGuarded(db: Db, documents: readonly PreparedDocument[]): Promise<void> {
    let remaining = documents;
    for (let attempt = 1; remaining.length > 0; attempt += 1) {
      try {
        await this.#documents(db).bulkWrite(
          remaining.map((one) => this.#guarded(one)),
          { ordered: false, ...((await this.#isRelaxed()) && { writeConcern: UNJOURNALED }) },
        );
        return;
      } catch (error) {
        const refused = duplicateStatementsOf(error);
        if (refused === null) throw error;
        const collided = remaining.filter((_, index) => refused.has(index));
        remaining = await this.#outdated(db, collided);
        if (remaining.length > 0 && attempt >= MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** The documents that are stored not at all, or at an earlier position. */
  async #outdated(
    db: Db,
    documents: readonly PreparedDocument[],
    session?: ClientSession,
  ): Promise<readonly PreparedDocument[]> {
    if (documents.length === 0) return [];
    const rows = await this.#documents(db)
      .find(
        { _id: { $in: documents.map(({ key }) => key) } },
        { projection: { _pos: 1 }, batchSize: documents.length, ...(session && { session }) },
      )
      .toArray();
    const positions = new Map(rows.map((row) => [row._id, row._pos]));
    return documents.filter(({ key, position }) => {
      const there = positions.get(key);
      return there === undefined || there < position;
    });
  }

  /** Writes parts before the rows that name them. Unreferenced parts do no harm. */
  async #writeParts(db: Db, documents: readonly PreparedDocument[]): Promise<void> {
    for (const { key, position, parts } of documents) {
      if (parts === null) continue;
      this.#large.add(key);
      await this.#parts(db).write(key, position, parts);
    }
  }

  /** Deletes parts that no row names now. What a crash leaves goes with the generation. */
  async #removeParts(db: Db, documents: readonly PreparedDocument[]): Promise<void> {
    for (const { key, position, parts } of documents) {
      if (!this.#large.has(key)) continue;
      await this.#parts(db).remove(key, position, parts === null);
      if (parts === null) this.#large.delete(key);
    }
  }

  async #isRelaxed(): Promise<boolean> {
    return this.#bulk && (await this.#connection.deployment()) === 'standalone';
  }

  /**
   * Has no time limit: over a million documents it takes minutes, and a retry would start over. By default a replica set
   * waits until every voting member has built an index, so one that is down would block a view. A majority is enough.
   */
  async #makeIndexes(tombstonesOnly: boolean): Promise<void> {
    const all = indexesOf(this.#projection);
    const indexes = tombstonesOnly ? all.slice(-1) : all;
    const build = async (db: Db): Promise<void> => {
      const documents = this.#documents(db);
      if ((await this.#connection.deployment()) !== 'standalone') {
        try {
          await documents.createIndexes(indexes, { commitQuorum: 'majority' });
          return;
        } catch (error) {
          if (!isUnsupportedOption(error)) throw error;
        }
      }
      await documents.createIndexes(indexes);
    };
    await this.#run('make_indexes', build, Infinity);
  }

  readonly #checkpoint = (db: Db) => new Checkpoint(db, this.#name, this.#options.fence);
  readonly #parts = (db: Db) => new DocumentParts(db, this.#name);
  readonly #documents = (db: Db) => db.collection<StoredDocument>(this.#name);

  #guarded(written: PreparedDocument): AnyBulkWriteOperation<StoredDocument> {
    const { key, position, document, text, parts } = written;
    const filter = { _id: key, _pos: { $lt: position } };
    const update =
      document === null
        ? {
            $set: { _pos: position, live: false },
            $unset: { d: '' as const, f: '' as const, parts: '' as const },
            $currentDate: { gone: true as const },
          }
        : {
            $set: {
              _pos: position,
              live: true,
              ...(parts === null ? { d: text ?? '' } : { parts: parts.length }),
              f: fieldsOf(this.#projection, document),
            },
            $unset: {
              gone: '' as const,
              ...(parts === null ? { parts: '' as const } : { d: '' as const }),
            },
          };
    return { updateOne: { filter, update, upsert: true } };
  }
}

function prepared(written: WrittenDocument): PreparedDocument {
  if (written.document === null) return { ...written, text: null, parts: null };
  const text = JSON.stringify(written.document);
  const parts = splitIntoParts(text);
  return { ...written, text: parts === null ? text : null, parts };
}

/** Keeps the latest document per key; an unordered write could leave an earlier one. */
function latestPerKey(documents: readonly WrittenDocument[]): readonly WrittenDocument[] {
  const latest = new Map<string, WrittenDocument>();
  for (const one of documents) {
    const known = latest.get(one.key);
    if (known === undefined || known.position < one.position) latest.set(one.key, one);
  }
  return [...latest.values()];
}
