import type {
  AnyBulkWriteOperation,
  ClientSession,
  Collection,
  Db,
  WriteConcernSettings,
} from 'mongodb';
import type { Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type {
  KeptDocument,
  Projection,
  ViewWriter,
  WriterOptions,
} from '../../projections/read-model.ts';
import { Checkpoint } from './checkpoints.ts';
import type { Deployment } from './connection.ts';
import {
  duplicatesOf,
  isTooLargeAtOnce,
  isWorthAnotherTransaction,
  isWithoutTransactions,
} from './failures.ts';
import { buildIndexes } from './index-builds.ts';
import { LargeTexts, partsOf } from './large-texts.ts';
import {
  type StoredDocument,
  collectionOf,
  fieldsOf,
  indexesOf,
  kept,
  parse,
  viewOf,
} from './layout.ts';

type Batch = Parameters<ViewWriter['write']>[0];
type Written = Batch['documents'][number];

/** What is to be written, with what is kept of it: the text in the row, or its parts where it is too large for that. */
type Prepared = Written & {
  readonly text: string | null;
  readonly parts: readonly string[] | null;
};

/** What a writer needs of the connection. */
export interface WriterConnection {
  /** Turns a driver's error into the port's. `limit` in milliseconds; there is one by default. */
  run<T>(operation: string, act: (db: Db) => Promise<T>, limit?: number): Promise<T>;
  hasTransactions(): Promise<boolean>;
  giveUpTransactions(cause: unknown): void;
  startSession(): ClientSession;
  /** What kind of server it is. Inside of `run`. */
  deployment(): Promise<Deployment>;
}

/** How often a write that met somebody else's is looked at again before that is a fault. */
const ATTEMPTS = 4;

/**
 * While nobody reads a generation, its documents need not be on a disk before the next batch: a server alone has its
 * journal in order, so that the checkpoint's place in it says the same of them. Not so where another member may become
 * the primary between the two: it may lack the documents, and would take the checkpoint all the same.
 */
const RELAXED: WriteConcernSettings = { w: 1, journal: false };

/**
 * The writer of one generation.
 *
 * Where there are no transactions, a batch is three steps, each right by itself:
 *
 * 1. Look: is the checkpoint `from`, and no larger fence known? Else refuse, before anything is written. Mark that
 *    documents are being written, for whoever reads a list (see `snapshot-lists.ts`).
 * 2. Write the documents, each guarded: only where the kept position is smaller. A delete is a tombstone
 *    with a position, so that it guards like any document.
 * 3. Move the checkpoint, in one conditional write: only where it is still `from` and the fence not larger.
 *
 * Stopped between 2 and 3, the same events are folded again. What has taken them already is loaded with
 * its later position, so the projector leaves them out, and the guard refuses whatever it does not.
 *
 * An old owner that was paused between 1 and 2, and goes on after a new one has passed it, does no harm
 * either. The log is one, and a projection is pure: what it holds for a key at a position is what the new
 * owner had for that key at that position. Either the new owner has kept a later one, and the guard
 * refuses; or it has kept that very one, and the guard refuses; or the key is not yet as far with the
 * new owner, who then finds it already right and goes on from there, as after a crash. Then step 3
 * refuses the old owner.
 *
 * A replica set or a sharded cluster has transactions; there 1 and 3 are one write at the transaction's
 * beginning, so that the second of two writers learns of the first before it has written anything.
 */
export class MongoViewWriter implements ViewWriter {
  readonly #connection: WriterConnection;
  readonly #projection: Projection;
  readonly #options: WriterOptions;
  readonly #name: string;
  /** Keys of which parts are kept, as far as this writer has seen. */
  readonly #large = new Set<string>();
  /** For its transactions, where there are any: one, so that whoever comes after it can end the last. */
  #session: ClientSession | null = null;
  /**
   * Whether the server may still have a transaction open in the session: one whose end, whichever it was, did not come
   * through, of this writer or of the one that had the session before. It has the checkpoint until the next transaction of
   * the session begins, or the server gives it up after a minute. Any write in the session would end it as well, but only
   * where the driver numbers that: not with `retryWrites=false` in the URL, which some compatible servers need.
   */
  #mayBeOpen: boolean;
  #bulk: boolean;

  private constructor(
    connection: WriterConnection,
    projection: Projection,
    options: WriterOptions,
  ) {
    this.#connection = connection;
    this.#projection = projection;
    this.#options = options;
    this.#name = collectionOf(projection, options.generation);
    this.#bulk = options.bulk;
    this.#mayBeOpen = !options.bulk;
  }

  /** Makes the generation known, with its indexes unless it is to be filled in bulk. */
  static async open(
    connection: WriterConnection,
    projection: Projection,
    options: WriterOptions,
  ): Promise<MongoViewWriter> {
    if (options.share !== undefined) {
      throw new TypeError(
        `${projection.name} can't be filled in shares: its documents lie in one place`,
      );
    }
    const writer = new MongoViewWriter(connection, projection, options);
    try {
      await connection.run('open_writer', (db) => writer.#claim(db));
      // The index over tombstones alone makes the collection, which transactions need to be there.
      await writer.#makeIndexes(options.bulk);
      return writer;
    } catch (error) {
      await writer.close();
      throw error;
    }
  }

  checkpoint(): Promise<Position> {
    return this.#connection.run('checkpoint', (db) => this.#checkpoint(db).position());
  }

  async load(
    keys: readonly string[],
  ): Promise<
    ReadonlyMap<string, { readonly position: Position; readonly document: JsonObject | null }>
  > {
    if (keys.length === 0) return new Map();
    const rows = await this.#connection.run('load', async (db) => {
      const found = await this.#documents(db)
        .find({ _id: { $in: [...keys] } }, { projection: { f: 0 }, batchSize: keys.length })
        .toArray();
      for (const { _id, parts } of found) if (parts !== undefined) this.#large.add(_id);
      return this.#texts(db).whole(found);
    });
    return new Map(
      rows.map((row) => [row._id, { position: row._pos, document: row.live ? parse(row) : null }]),
    );
  }

  async write(batch: Batch): Promise<void> {
    const documents = latestOfEach(batch.documents).map(prepared);
    await this.#connection.run('write', async (db) => {
      // One conditional write is atomic by itself: most batches of most views move nothing but the checkpoint.
      if (documents.length === 0 && !this.#mayBeOpen) return this.#checkpoint(db).move(batch);
      await this.#keepParts(db, documents);
      const transactional = !this.#bulk && (await this.#connection.hasTransactions());
      if (!transactional || !(await this.#writeAtOnce(db, documents, batch))) {
        const checkpoint = this.#checkpoint(db);
        // Nobody reads a generation that is filled in bulk.
        await (this.#bulk ? checkpoint.expect(batch.from) : checkpoint.announce(batch));
        await this.#writeGuarded(db, documents);
        await checkpoint.move(batch);
      }
      await this.#forgetParts(db, documents);
    });
  }

  page(after: string | null, limit: number): Promise<readonly KeptDocument[]> {
    return this.#connection.run('page', async (db) => {
      const condition = after === null ? { live: true } : { live: true, _id: { $gt: after } };
      const rows = await this.#documents(db)
        .find(condition, { sort: { _id: 1 }, limit, projection: { f: 0 }, batchSize: limit })
        .toArray();
      return (await this.#texts(db).whole(rows)).map((row) => kept(row));
    });
  }

  count(): Promise<number> {
    return this.#connection.run(
      'count',
      (db) => this.#documents(db).countDocuments({ live: true }),
      Infinity,
    );
  }

  async finish(): Promise<void> {
    if (!this.#bulk) return;
    await this.#makeIndexes(false);
    await this.#connection.run('finish', (db) => this.#checkpoint(db).settle());
    this.#bulk = false;
  }

  /** Waits for nothing: a transaction that hangs is ended by whoever comes after. */
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

  /**
   * Documents and checkpoint in one transaction.
   * @returns false when it was not to be had; the guarded way is then as good
   */
  async #writeAtOnce(db: Db, documents: readonly Prepared[], batch: Batch): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      session.startTransaction();
      this.#mayBeOpen = true;
      try {
        await this.#checkpoint(db).move(batch, session);
        const late = await this.#keptBehind(db, documents, session);
        if (late.length > 0) {
          await this.#documents(db).bulkWrite(
            late.map((one) => this.#guarded(one)),
            { session },
          );
        }
        await session.commitTransaction();
        this.#mayBeOpen = false;
        return true;
      } catch (error) {
        if (session.inTransaction()) await session.abortTransaction();
        if (isWithoutTransactions(error)) {
          this.#connection.giveUpTransactions(error);
          return false;
        }
        if (isTooLargeAtOnce(error)) return false;
        if (!isWorthAnotherTransaction(error)) throw error;
      }
    }
    return false;
  }

  /**
   * Guarded upserts: where a document is kept at the same or a later position the filter finds nothing,
   * and the insert that follows from that fails on the key. That failure is the guard at work, but only
   * when the kept position says so: it is also what the second of two inserts at once meets, whose
   * document may be the later one, and what any other unique index would say.
   */
  async #writeGuarded(db: Db, documents: readonly Prepared[]): Promise<void> {
    let left = documents;
    for (let attempt = 1; left.length > 0; attempt += 1) {
      try {
        await this.#documents(db).bulkWrite(
          left.map((one) => this.#guarded(one)),
          {
            ordered: false,
            ...((await this.#isRelaxed()) && { writeConcern: RELAXED }),
          },
        );
        return;
      } catch (error) {
        const refused = duplicatesOf(error);
        if (refused === null) throw error;
        const met = left.filter((_, index) => refused.has(index));
        left = await this.#keptBehind(db, met);
        if (left.length > 0 && attempt >= ATTEMPTS) throw error;
      }
    }
  }

  /** Those of which nothing, or only an earlier position, is kept. */
  async #keptBehind(
    db: Db,
    documents: readonly Prepared[],
    session?: ClientSession,
  ): Promise<readonly Prepared[]> {
    if (documents.length === 0) return [];
    const rows = await this.#documents(db)
      .find(
        { _id: { $in: documents.map(({ key }) => key) } },
        {
          projection: { _pos: 1 },
          batchSize: documents.length,
          ...(session !== undefined && { session }),
        },
      )
      .toArray();
    const positions = new Map(rows.map((row) => [row._id, row._pos]));
    return documents.filter(({ key, position }) => {
      const there = positions.get(key);
      return there === undefined || there < position;
    });
  }

  /** Before the rows that name them. Nobody reads them before, and to a writer that comes too late they do no harm. */
  async #keepParts(db: Db, documents: readonly Prepared[]): Promise<void> {
    for (const { key, position, parts } of documents) {
      if (parts === null) continue;
      this.#large.add(key);
      await this.#texts(db).keep(key, position, parts);
    }
  }

  /** What the rows do not name any more; whatever a death leaves goes with the generation. */
  async #forgetParts(db: Db, documents: readonly Prepared[]): Promise<void> {
    for (const { key, position, parts } of documents) {
      if (!this.#large.has(key)) continue;
      await this.#texts(db).forget(key, position, parts === null);
      if (parts === null) this.#large.delete(key);
    }
  }

  async #isRelaxed(): Promise<boolean> {
    return this.#bulk && (await this.#connection.deployment()) === 'standalone';
  }

  /** Without a limit: over a million documents it takes minutes, and giving up would begin it again. */
  async #makeIndexes(tombstonesOnly: boolean): Promise<void> {
    const all = indexesOf(this.#projection);
    const indexes = tombstonesOnly ? all.slice(-1) : all;
    await this.#connection.run(
      'make_indexes',
      async (db) => buildIndexes(this.#documents(db), indexes, await this.#connection.deployment()),
      Infinity,
    );
  }

  #checkpoint(db: Db): Checkpoint {
    return new Checkpoint(db, this.#name, this.#options.fence);
  }

  #texts(db: Db): LargeTexts {
    return new LargeTexts(db, this.#name);
  }

  #documents(db: Db): Collection<StoredDocument> {
    return db.collection<StoredDocument>(this.#name);
  }

  #guarded(written: Prepared): AnyBulkWriteOperation<StoredDocument> {
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

function prepared(written: Written): Prepared {
  if (written.document === null) return { ...written, text: null, parts: null };
  const text = JSON.stringify(written.document);
  const parts = partsOf(text);
  return { ...written, text: parts === null ? text : null, parts };
}

/** One document to a key: an unordered write could otherwise leave the earlier of two. */
function latestOfEach(documents: readonly Written[]): readonly Written[] {
  const latest = new Map<string, Written>();
  for (const one of documents) {
    const known = latest.get(one.key);
    if (known === undefined || known.position < one.position) latest.set(one.key, one);
  }
  return [...latest.values()];
}
