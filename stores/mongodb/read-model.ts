import type { Db } from 'mongodb';
import { BEGINNING, type Landmark, type Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  type FieldValue,
  type FieldValues,
  type Filter,
  type ViewDocument,
  type Listed,
  type ListQuery,
  type Projection,
  type Query,
  type ReadModel,
  ReadModelError,
  type ValuesQuery,
  type ViewWriter,
  type WriterOptions,
} from '../../projections/read-model.ts';
import { CheckpointMoves } from './checkpoint-moves.ts';
import { type MongoOptions, type SharedConnection, shareConnection } from './connection.ts';
import {
  CHECKPOINTS,
  STORED,
  type StoredCheckpoint,
  type StoredDocument,
  collectionOf,
  toKeptDocument,
  viewOf,
} from './layout.ts';
import { DocumentParts, partsCollectionOf } from './document-parts.ts';
import { LiveGenerations } from './live-generations.ts';
import { conditionOf, pageOf, singlePathOf, sortOf } from './queries.ts';
import { readList } from './snapshot-lists.ts';
import { createMissingIndexes, type RunOperation } from './view-indexes.ts';
import { MongoViewWriter } from './view-writer.ts';

/** Documents of which values are read at a time. */
const VALUES_BATCH = 5000;

export interface MongoReadModelOptions extends MongoOptions {
  /** A monotonic clock in milliseconds, for tests. */
  readonly monotonic?: () => number;
}

/**
 * The read model in MongoDB (4.4 or newer), or a compatible server. Uses transactions where the server has them.
 *
 * Opens without a server; each operation then throws `UNAVAILABLE` until one is reachable.
 * @throws MongoParseError for an invalid URL; Error where a file that it names cannot be read
 */
export async function openMongoReadModel(options: MongoReadModelOptions): Promise<ReadModel> {
  const { monotonic, ...connection } = options;
  return new MongoReadModel(shareConnection(connection), new LiveGenerations(monotonic));
}

class MongoReadModel implements ReadModel {
  readonly #shared: SharedConnection;
  readonly #live: LiveGenerations;
  readonly #moves = new CheckpointMoves();
  #closed = false;

  constructor(shared: SharedConnection, live: LiveGenerations) {
    this.#shared = shared;
    this.#live = live;
  }

  get<D extends JsonObject>(
    projection: Projection<D>,
    key: string,
  ): Promise<ViewDocument<D> | null> {
    return this.#read('get', projection, async (db, collection) => {
      const row = await db
        .collection<StoredDocument>(collection)
        .findOne({ _id: key, live: true }, { projection: STORED });
      const [whole] = row === null ? [] : await new DocumentParts(db, collection).complete([row]);
      return whole === undefined ? null : toKeptDocument<D>(whole);
    });
  }

  find<D extends JsonObject>(
    projection: Projection<D>,
    query: Query,
  ): Promise<readonly ViewDocument<D>[]> {
    return this.#read('find', projection, async (db, collection) => {
      const condition = pageOf(projection, query);
      const sort = sortOf(projection, query);
      // MongoDB takes a limit of 0 for none.
      if (query.limit <= 0) return [];
      const rows = await db
        .collection<StoredDocument>(collection)
        .find(condition, {
          sort,
          skip: query.offset ?? 0,
          limit: query.limit,
          batchSize: Math.min(query.limit, 1000),
          projection: STORED,
          maxTimeMS: this.#shared.connection.maxTimeMS,
          // A far page without a matching index sorts in memory. By default, servers before 6.0 refuse this beyond 100
          // MB.
          allowDiskUse: true,
        })
        .toArray();
      const whole = await new DocumentParts(db, collection).complete(rows);
      return whole.map((row) => toKeptDocument<D>(row));
    });
  }

  count<D extends JsonObject>(
    projection: Projection<D>,
    filters: readonly Filter[],
  ): Promise<number> {
    return this.#read('count', projection, (db, collection) =>
      this.#count(db, collection, projection, filters),
    );
  }

  values(
    projection: Projection,
    { filters, fields }: ValuesQuery,
  ): Promise<readonly FieldValues[]> {
    return this.#read('values', projection, async (db, collection) => {
      const paths = fields.map((field) => [singlePathOf(projection, field), 1]);
      const rows = await db
        .collection<StoredDocument>(collection)
        .find(conditionOf(projection, filters), {
          projection: paths.length === 0 ? { _id: 1 } : Object.fromEntries(paths),
          batchSize: VALUES_BATCH,
          maxTimeMS: this.#shared.connection.maxTimeMS,
        })
        .toArray();
      return rows.map(({ _id: key, f }) => {
        return { key, values: fields.map((field) => (f?.[field] ?? null) as FieldValue) };
      });
    });
  }

  list(projection: Projection, query: ListQuery): Promise<Listed> {
    const { connection } = this.#shared;
    return this.#read('list', projection, (db, collection) => {
      const count = (filters: readonly Filter[]): Promise<number> =>
        this.#count(db, collection, projection, filters);
      return readList({ db, collection, projection, connection, count }, query);
    });
  }

  async checkpoint(projection: Projection): Promise<Position> {
    return (await this.#checkpoint('checkpoint', projection))?.position ?? BEGINNING;
  }

  async landmark(projection: Projection): Promise<Landmark | null> {
    return (await this.#checkpoint('landmark', projection))?.landmark ?? null;
  }

  openWriter(projection: Projection, options: WriterOptions): Promise<ViewWriter> {
    const parts = {
      connection: this.#shared.connection,
      run: this.#runOperation,
      moves: this.#moves,
    };
    return MongoViewWriter.open(parts, projection, options);
  }

  liveGeneration(projection: Projection): Promise<number | null> {
    return this.#run('live_generation', (db) => this.#live.current(db, viewOf(projection)));
  }

  /** Creates missing indexes first, because no generation must be read without them. */
  async switchTo(projection: Projection, generation: number): Promise<void> {
    await createMissingIndexes(this.#shared.connection, this.#runOperation, projection, generation);
    await this.#run('switch', (db) => this.#live.set(db, viewOf(projection), generation));
  }

  withdraw(projection: Projection): Promise<void> {
    return this.#run('withdraw', (db) => this.#live.unset(db, viewOf(projection)));
  }

  schemas({ name }: Projection): Promise<readonly number[]> {
    return this.#run('schemas', async (db) => {
      // One row per generation of each view. View names are not escaped for patterns.
      const stored = await db.collection<StoredCheckpoint>(CHECKPOINTS).find({}).toArray();
      const found = stored.flatMap(({ view }) => {
        const [, of, schema] = /^(.+)_s(\d+)$/.exec(view) ?? [];
        return of === name ? [Number(schema)] : [];
      });
      return [...new Set(found)].sort((a, b) => a - b);
    });
  }

  generations(projection: Projection): Promise<readonly number[]> {
    return this.#run('generations', async (db) => {
      const stored = await db
        .collection<StoredCheckpoint>(CHECKPOINTS)
        .find({ view: viewOf(projection) }, { sort: { generation: 1 } })
        .toArray();
      return stored.map(({ generation }) => generation);
    });
  }

  /**
   * Resets the checkpoint first and deletes it last. After a crash in between, the generation is still listed, and it
   * reopens empty at the beginning of the log.
   * @throws RangeError when the generation is live
   */
  discard(projection: Projection, generation: number): Promise<void> {
    return this.#run('discard', async (db) => {
      const name = collectionOf(projection, generation);
      if ((await this.#live.current(db, viewOf(projection))) === generation) {
        throw new RangeError(`${name} is live and cannot be discarded`);
      }
      const checkpoints = db.collection<StoredCheckpoint>(CHECKPOINTS);
      await checkpoints.updateOne(
        { _id: name },
        { $set: { position: BEGINNING }, $unset: { landmark: '' } },
      );
      // Rows first: after a crash in between, rows would refer to missing parts.
      await db.dropCollection(name);
      await db.dropCollection(partsCollectionOf(name));
      await checkpoints.deleteOne({ _id: name });
    });
  }

  async ping(): Promise<void> {
    this.#refuseWhenClosed();
    await this.#shared.connection.ping(unavailable);
  }

  async requireRights(): Promise<void> {
    this.#refuseWhenClosed();
    await this.#shared.connection.requireRights(unavailable);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#shared.release();
  }

  async #count(
    db: Db,
    collection: string,
    projection: Projection,
    filters: readonly Filter[],
  ): Promise<number> {
    const documents = db.collection<StoredDocument>(collection);
    const condition = conditionOf(projection, filters);
    const sharded = (await this.#shared.connection.deployment()) === 'sharded';
    // Counting a million index entries takes half a second; the server's own number is free. It may be slightly off
    // after a crash of the server. Sharded clusters also count documents in migration, so it is not used there.
    const { maxTimeMS } = this.#shared.connection;
    if (filters.length > 0 || sharded) return documents.countDocuments(condition, { maxTimeMS });
    const [all, tombstones] = await Promise.all([
      documents.estimatedDocumentCount({ maxTimeMS }),
      documents.countDocuments({ gone: { $gt: new Date(0) } }, { maxTimeMS }),
    ]);
    return Math.max(0, all - tombstones);
  }

  /** The checkpoint of the live generation. */
  #checkpoint(operation: string, projection: Projection): Promise<StoredCheckpoint | null> {
    return this.#run(operation, async (db) => {
      const generation = await this.#live.recent(db, viewOf(projection));
      if (generation === null) return null;
      return db
        .collection<StoredCheckpoint>(CHECKPOINTS)
        .findOne({ _id: collectionOf(projection, generation) });
    });
  }

  /** Reads the live generation. An empty result may mean that it was just discarded, so the pointer is checked again. */
  #read<T>(
    operation: string,
    projection: Projection,
    act: (db: Db, collection: string) => Promise<T>,
  ): Promise<T> {
    return this.#run(operation, async (db) => {
      const view = viewOf(projection);
      const generation = await this.#live.recent(db, view);
      if (generation === null) throw noView(projection);
      const result = await act(db, collectionOf(projection, generation));
      if (!isNothing(result)) return result;
      const current = await this.#live.current(db, view);
      if (current === generation) return result;
      if (current === null) throw noView(projection);
      return act(db, collectionOf(projection, current));
    });
  }

  readonly #runOperation: RunOperation = (operation, act, limit) =>
    this.#run(operation, act, limit);

  async #run<T>(operation: string, act: (db: Db) => Promise<T>, limit?: number): Promise<T> {
    this.#refuseWhenClosed();
    return this.#shared.connection.run(operation, unavailable, act, limit);
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw new ReadModelError('UNAVAILABLE', 'The read model is closed');
  }
}

function unavailable(message: string, cause: unknown): ReadModelError {
  return new ReadModelError('UNAVAILABLE', message, cause);
}

function noView(projection: Projection): ReadModelError {
  return new ReadModelError('NO_VIEW', `${viewOf(projection)} has no live generation yet`);
}

function isNothing(result: unknown): boolean {
  if (result === null || result === 0) return true;
  if (Array.isArray(result)) return result.length === 0;
  return typeof result === 'object' && 'documents' in result && isNothing(result.documents);
}
