import type { ClientSession, Db, WriteConcernSettings } from 'mongodb';
import type { JsonObject } from '../../domain/json.ts';
import type { Position } from '../../domain/event-store.ts';
import type {
  ViewDocument,
  Projection,
  ViewWriter,
  WriterOptions,
} from '../../projections/read-model.ts';
import { Checkpoint } from './checkpoint.ts';
import type { CheckpointMoves } from './checkpoint-moves.ts';
import type { MongoConnection } from './connection.ts';
import {
  isDuplicateKey,
  isTransactionTooLarge,
  isTransientTransactionError,
  isTransactionUnsupported,
} from './driver-errors.ts';
import { DocumentParts } from './document-parts.ts';
import {
  type StoredDocument,
  collectionOf,
  toKeptDocument,
  parseDocument,
  viewOf,
} from './layout.ts';
import { type PreparedDocument, RowWrites, prepare } from './row-writes.ts';
import { createMissingIndexes, type RunOperation } from './view-indexes.ts';

type Batch = Parameters<ViewWriter['write']>[0];
type Loaded = Awaited<ReturnType<ViewWriter['load']>>;

/** A batch of a bulk fill that is still being written. */
interface PendingBatch {
  readonly documents: ReadonlyMap<string, PreparedDocument>;
  /** Rejects with its failure, which the writer's next call reports. */
  readonly done: Promise<void>;
}

/** The parts that all writers of a read model share. */
interface WriterParts {
  readonly connection: MongoConnection;
  readonly run: RunOperation;
  readonly moves: CheckpointMoves;
}

/** The most attempts of a transaction that collides with other writers. */
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
 * 1. Check that the checkpoint is `from` and that no larger fence is known, otherwise fail. Mark that documents are
 *    being written, for readers of lists (see `snapshot-lists.ts`).
 * 2. Write each document only where the stored position is smaller. A delete leaves a tombstone with a position.
 * 3. Move the checkpoint in one conditional write: only from `from`, and with no larger fence.
 *
 * After a crash between 2 and 3 the same events are applied again. Documents that already include these events are
 * loaded with their later position, so the projector skips those events, and the guard in 2 rejects the rest.
 *
 * An old writer that pauses between 1 and 2 does no harm either. Projections are pure, so the old writer's document for
 * a key at a position equals the new writer's. If the new writer is ahead, the guard rejects the document; otherwise
 * the stored document is already the same. Step 3 then rejects the old writer.
 *
 * With transactions, 1 and 3 are one write at the start, so the second of two writers fails before it writes anything.
 *
 * In bulk, 2 and 3 continue while the next events are folded. Only one batch is written at a time.
 */
export class MongoViewWriter implements ViewWriter {
  readonly #connection: MongoConnection;
  readonly #run: RunOperation;
  readonly #moves: CheckpointMoves;
  readonly #projection: Projection;
  readonly #options: WriterOptions;
  readonly #name: string;
  /** Keys with parts, as far as this writer has seen. */
  readonly #large = new Set<string>();
  /** The one session of its transactions, so that the next writer can end the last one. */
  #session: ClientSession | null = null;
  /**
   * Whether a transaction may still be open in the session, because the command that ends it was lost. It holds the
   * checkpoint until the session's next transaction begins, or for a minute. A plain write would end it too, but not
   * with `retryWrites=false`, which some compatible servers need.
   */
  #mayHaveOpenTransaction: boolean;
  #bulk: boolean;
  /** Keys that had no row when they were loaded since the last write. */
  #missing = new Set<string>();
  #pending: PendingBatch | null = null;

  /** Use {@link open}. */
  constructor(
    { connection, run, moves }: WriterParts,
    projection: Projection,
    options: WriterOptions,
  ) {
    this.#connection = connection;
    this.#run = run;
    this.#moves = moves;
    this.#projection = projection;
    this.#options = options;
    this.#name = collectionOf(projection, options.generation);
    this.#bulk = options.bulk;
    this.#mayHaveOpenTransaction = !options.bulk;
  }

  /** Registers the generation, and creates its indexes unless it is filled in bulk. */
  static async open(
    parts: WriterParts,
    projection: Projection,
    options: WriterOptions,
  ): Promise<MongoViewWriter> {
    if (options.share !== undefined) {
      throw new TypeError(
        `${projection.name} cannot be filled in shares: its documents are in one place`,
      );
    }
    const writer = new MongoViewWriter(parts, projection, options);
    try {
      await parts.run('open_writer', (db) => writer.#claim(db));
      // This creates the collection too, which transactions require.
      if (!options.bulk) await writer.#createIndexes();
      return writer;
    } catch (error) {
      await writer.close();
      throw error;
    }
  }

  async checkpoint(): Promise<Position> {
    await this.#written();
    return this.#run('checkpoint', (db) => this.#checkpoint(db).position());
  }

  async load(keys: readonly string[]): Promise<Loaded> {
    const known = new Map<string, { position: Position; document: JsonObject | null }>();
    const asked: string[] = [];
    for (const key of keys) {
      const pending = this.#pending?.documents.get(key);
      if (pending === undefined) asked.push(key);
      else known.set(key, { position: pending.position, document: pending.document });
    }
    if (asked.length === 0) return known;
    for (const row of await this.#run('load', (db) => this.#load(db, asked))) {
      known.set(row._id, { position: row._pos, document: row.live ? parseDocument(row) : null });
    }
    for (const key of asked) if (!known.has(key)) this.#missing.add(key);
    return known;
  }

  async write(batch: Batch): Promise<void> {
    await this.#written();
    const documents = prepare(batch.documents, this.#missing);
    this.#missing = new Set();
    if (!this.#bulk || documents.length === 0) {
      return this.#run('write', (db) => this.#write(db, documents, batch));
    }
    await this.#run('expect', (db) => this.#checkpoint(db).expect(batch.from));
    const done = this.#run('write', (db) => this.#fill(db, documents, batch));
    // The next call reports the error; until then, nobody handles this promise.
    done.catch(() => undefined);
    this.#pending = { documents: new Map(documents.map((one) => [one.key, one])), done };
  }

  async page(after: string | null, limit: number): Promise<readonly ViewDocument[]> {
    await this.#written();
    return this.#run('page', async (db) => {
      const condition = after === null ? { live: true } : { live: true, _id: { $gt: after } };
      const rows = await this.#documents(db)
        .find(condition, { sort: { _id: 1 }, limit, projection: { f: 0 }, batchSize: limit })
        .toArray();
      return (await this.#parts(db).complete(rows)).map((row) => toKeptDocument(row));
    });
  }

  async count(): Promise<number> {
    await this.#written();
    return this.#run('count', (db) => this.#documents(db).countDocuments({ live: true }), Infinity);
  }

  async finish(): Promise<void> {
    if (!this.#bulk) return;
    await this.#written();
    await this.#createIndexes();
    await this.#run('finish', (db) => this.#checkpoint(db).settle());
    this.#bulk = false;
  }

  /** Waits for a batch that is being written in bulk. A hanging transaction is left to the next writer. */
  async close(): Promise<void> {
    void this.#session?.endSession();
    this.#session = null;
    await this.#written();
  }

  /** Waits for the batch that is being written, if any. @throws its failure */
  async #written(): Promise<void> {
    const pending = this.#pending;
    this.#pending = null;
    await pending?.done;
  }

  async #claim(db: Db): Promise<void> {
    if (await this.#connection.hasTransactions()) {
      this.#session = this.#connection.startSession();
    }
    const { generation } = this.#options;
    await this.#checkpoint(db).claim(viewOf(this.#projection), generation, this.#session?.id?.id);
  }

  async #load(db: Db, keys: readonly string[]): Promise<readonly StoredDocument[]> {
    const found = await this.#documents(db)
      .find({ _id: { $in: [...keys] } }, { projection: { f: 0 }, batchSize: keys.length })
      .toArray();
    for (const { _id, parts } of found) if (parts !== undefined) this.#large.add(_id);
    return this.#parts(db).complete(found);
  }

  async #write(db: Db, documents: readonly PreparedDocument[], batch: Batch): Promise<void> {
    const checkpoint = this.#checkpoint(db);
    const transactional = await this.#connection.hasTransactions();
    // Most batches of most views only move the checkpoint, which is atomic by itself.
    if (documents.length === 0 && !(transactional && this.#mayHaveOpenTransaction)) {
      return checkpoint.moveWith(this.#moves, batch);
    }
    await this.#writeParts(db, documents);
    if (!transactional || !(await this.#writeAtOnce(db, documents, batch))) {
      await checkpoint.announce(batch);
      await this.#rows(db).write(documents);
      await checkpoint.move(batch);
    }
    await this.#removeParts(db, documents);
  }

  /** Writes a batch of a bulk fill whose checkpoint was checked. Nobody reads the generation yet. */
  async #fill(db: Db, documents: readonly PreparedDocument[], batch: Batch): Promise<void> {
    await this.#writeParts(db, documents);
    const standalone = (await this.#connection.deployment()) === 'standalone';
    await this.#rows(db).write(documents, standalone ? UNJOURNALED : undefined);
    await this.#checkpoint(db).move(batch);
    await this.#removeParts(db, documents);
  }

  /**
   * Writes documents and checkpoint in one transaction. An unexpected existing row ends it, and the next transaction
   * first looks up the stored positions.
   * @returns false if guarded writes must be used
   */
  async #writeAtOnce(
    db: Db,
    documents: readonly PreparedDocument[],
    batch: Batch,
  ): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    const rows = this.#rows(db);
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      session.startTransaction();
      this.#mayHaveOpenTransaction = true;
      try {
        await this.#checkpoint(db).move(batch, session);
        const due = attempt === 1 ? documents : await rows.outdated(documents, session);
        await rows.writeIn(session, due);
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
        const isUnexpectedRow = attempt === 1 && isDuplicateKey(error);
        if (!isUnexpectedRow && !isTransientTransactionError(error)) throw error;
      }
    }
    return false;
  }

  /** Writes parts before the rows that name them. Unreferenced parts do no harm. */
  async #writeParts(db: Db, documents: readonly PreparedDocument[]): Promise<void> {
    for (const { key, position, parts } of documents) {
      if (parts === null) continue;
      this.#large.add(key);
      await this.#parts(db).write(key, position, parts);
    }
  }

  /** Deletes parts that no row names any more. Parts that a crash leaves behind are removed with the generation. */
  async #removeParts(db: Db, documents: readonly PreparedDocument[]): Promise<void> {
    for (const { key, position, parts } of documents) {
      if (!this.#large.has(key)) continue;
      await this.#parts(db).remove(key, position, parts === null);
      if (parts === null) this.#large.delete(key);
    }
  }

  #createIndexes(): Promise<void> {
    const { generation } = this.#options;
    return createMissingIndexes(this.#connection, this.#run, this.#projection, generation);
  }

  readonly #checkpoint = (db: Db) => new Checkpoint(db, this.#name, this.#options.fence);
  readonly #parts = (db: Db) => new DocumentParts(db, this.#name);
  readonly #documents = (db: Db) => db.collection<StoredDocument>(this.#name);
  readonly #rows = (db: Db) => new RowWrites(db, this.#name, this.#projection);
}
