import type { Db } from 'mongodb';
import { BEGINNING, type Landmark, type Position } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  type Filter,
  type KeptDocument,
  type Listed,
  type ListQuery,
  type Projection,
  type Query,
  type ReadModel,
  ReadModelError,
  type ViewWriter,
  type WriterOptions,
} from '../../projections/read-model.ts';
import { type MongoOptions, type SharedConnection, shareConnection } from './connection.ts';
import {
  CHECKPOINTS,
  type StoredCheckpoint,
  type StoredDocument,
  collectionOf,
  kept,
  viewOf,
} from './layout.ts';
import { LargeTexts, partsCollectionOf } from './large-texts.ts';
import { LiveGenerations } from './live-generations.ts';
import { conditionOf, pageOf, sortOf } from './queries.ts';
import { readList } from './snapshot-lists.ts';
import { MongoViewWriter, type WriterConnection } from './view-writer.ts';

/** {@link openMongoReadModel}'s options. */
export interface MongoReadModelOptions extends MongoOptions {
  /** Milliseconds that only grow, for how long a pointer is believed; for tests. */
  readonly monotonic?: () => number;
}

/**
 * The read model in MongoDB: 4.4 or newer, or a server compatible with it. Transactions are used where the
 * server has them, and not needed.
 *
 * Opens without a server, too: each operation then throws `UNAVAILABLE`, until there is one.
 *
 * @throws MongoParseError for a URL that is none; Error where a file that it names can't be read
 */
export function openMongoReadModel(options: MongoReadModelOptions): Promise<ReadModel> {
  const { monotonic, ...connection } = options;
  // In a promise's function, so that a bad URL rejects.
  return new Promise((resolve) => {
    resolve(new MongoReadModel(shareConnection(connection), new LiveGenerations(monotonic)));
  });
}

class MongoReadModel implements ReadModel {
  readonly #shared: SharedConnection;
  readonly #live: LiveGenerations;
  #closed = false;

  constructor(shared: SharedConnection, live: LiveGenerations) {
    this.#shared = shared;
    this.#live = live;
  }

  get<D extends JsonObject>(
    projection: Projection<D>,
    key: string,
  ): Promise<KeptDocument<D> | null> {
    return this.#read('get', projection, async (db, collection) => {
      const row = await db
        .collection<StoredDocument>(collection)
        .findOne({ _id: key, live: true }, { projection: { _pos: 1, d: 1, parts: 1 } });
      const [whole] = row === null ? [] : await new LargeTexts(db, collection).whole([row]);
      return whole === undefined ? null : kept<D>(whole);
    });
  }

  find<D extends JsonObject>(
    projection: Projection<D>,
    query: Query,
  ): Promise<readonly KeptDocument<D>[]> {
    return this.#read('find', projection, async (db, collection) => {
      const condition = pageOf(projection, query);
      const sort = sortOf(projection, query);
      const { maxTimeMS } = this.#shared.connection;
      // To MongoDB a limit of 0 means none.
      if (query.limit <= 0) return [];
      const rows = await db
        .collection<StoredDocument>(collection)
        .find(condition, {
          sort,
          skip: query.offset ?? 0,
          limit: query.limit,
          batchSize: Math.min(query.limit, 1000),
          projection: { _pos: 1, d: 1, parts: 1 },
          maxTimeMS,
          // Where no index has the order, a page far behind keeps all before it in mind: over 100 MB of them servers
          // before 6.0 refuse unless they are told that they may use the disk.
          allowDiskUse: true,
        })
        .toArray();
      const whole = await new LargeTexts(db, collection).whole(rows);
      return whole.map((row) => kept<D>(row));
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

  list(projection: Projection, query: ListQuery): Promise<Listed> {
    const { connection } = this.#shared;
    return this.#read('list', projection, (db, collection) => {
      const { maxTimeMS } = connection;
      const parts = {
        db,
        collection,
        projection,
        maxTimeMS,
        count: (filters: readonly Filter[]) => this.#count(db, collection, projection, filters),
        startSession: async () =>
          (await connection.hasTransactions())
            ? connection.client.startSession({ causalConsistency: false })
            : null,
        giveUpTransactions: (cause: unknown) => connection.giveUpTransactions(cause),
      };
      return readList(parts, query);
    });
  }

  async checkpoint(projection: Projection): Promise<Position> {
    return (await this.#checkpoint('checkpoint', projection))?.position ?? BEGINNING;
  }

  async landmark(projection: Projection): Promise<Landmark | null> {
    return (await this.#checkpoint('landmark', projection))?.landmark ?? null;
  }

  openWriter(projection: Projection, options: WriterOptions): Promise<ViewWriter> {
    const { connection } = this.#shared;
    const forWriter: WriterConnection = {
      run: (operation, act, limit) => this.#run(operation, act, limit),
      hasTransactions: () => connection.hasTransactions(),
      giveUpTransactions: (cause) => connection.giveUpTransactions(cause),
      startSession: () => connection.client.startSession({ causalConsistency: false }),
      deployment: () => connection.deployment(),
    };
    return MongoViewWriter.open(forWriter, projection, options);
  }

  liveGeneration(projection: Projection): Promise<number | null> {
    return this.#run('live_generation', (db) => this.#live.current(db, viewOf(projection)));
  }

  switchTo(projection: Projection, generation: number): Promise<void> {
    return this.#run('switch', (db) => this.#live.set(db, viewOf(projection), generation));
  }

  withdraw(projection: Projection): Promise<void> {
    return this.#run('withdraw', (db) => this.#live.unset(db, viewOf(projection)));
  }

  schemas({ name }: Projection): Promise<readonly number[]> {
    return this.#run('schemas', async (db) => {
      // Few rows: each generation of each view has one. Names of views are not made for patterns.
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
   * First the checkpoint goes back to the beginning, last it goes away: stopped in between, the generation
   * is still listed, and who opens it finds an empty one at the beginning, never an empty one at its end.
   *
   * @throws RangeError when the generation is live
   */
  discard(projection: Projection, generation: number): Promise<void> {
    return this.#run('discard', async (db) => {
      const name = collectionOf(projection, generation);
      if ((await this.#live.current(db, viewOf(projection))) === generation) {
        throw new RangeError(`${name} is live and can't be thrown away`);
      }
      const checkpoints = db.collection<StoredCheckpoint>(CHECKPOINTS);
      await checkpoints.updateOne(
        { _id: name },
        { $set: { position: BEGINNING }, $unset: { landmark: '' } },
      );
      // The rows first: who opened it after a death between the two would look for parts that are gone.
      await db.dropCollection(name);
      await db.dropCollection(partsCollectionOf(name));
      await checkpoints.deleteOne({ _id: name });
    });
  }

  async ping(): Promise<void> {
    this.#refuseWhenClosed();
    await this.#shared.connection.ping(unavailable);
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
    // Looking at each of a million entries takes the server half a second, its own number nothing. That may be a
    // little off from when the server crashed until its `validate` or another generation. A shard's number is never
    // to be relied on: it also counts documents that are on their way to another shard.
    const { maxTimeMS } = this.#shared.connection;
    if (filters.length > 0 || sharded) return documents.countDocuments(condition, { maxTimeMS });
    const [all, tombstones] = await Promise.all([
      documents.estimatedDocumentCount({ maxTimeMS }),
      documents.countDocuments({ gone: { $gt: new Date(0) } }, { maxTimeMS }),
    ]);
    return Math.max(0, all - tombstones);
  }

  /** Of the live generation. */
  #checkpoint(operation: string, projection: Projection): Promise<StoredCheckpoint | null> {
    return this.#run(operation, async (db) => {
      const generation = await this.#live.recent(db, viewOf(projection));
      if (generation === null) return null;
      return db
        .collection<StoredCheckpoint>(CHECKPOINTS)
        .findOne({ _id: collectionOf(projection, generation) });
    });
  }

  /**
   * Reads the live generation. What is not found in one that was live a moment ago may be so because it
   * has been thrown away meanwhile: then the pointer is looked at again.
   */
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
