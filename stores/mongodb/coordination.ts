import type { Db, Document } from 'mongodb';
import type { Clock } from '../../domain/clock.ts';
import { type JsonObject, isJsonObject } from '../../domain/json.ts';
import {
  type Coordination,
  CoordinationError,
  type Lease,
  type LiveMember,
} from '../../scheduler/coordination.ts';
import { type MongoOptions, type SharedConnection, shareConnection } from './connection.ts';
import { isDuplicateKey } from './driver-errors.ts';
import { MongoJobLeases } from './job-leases.ts';

export interface MongoCoordinationOptions extends MongoOptions {
  /** Replaces the server's clock in tests. */
  readonly clockForTests?: Pick<Clock, 'now'>;
}

/**
 * How far ahead of the present a start time may lie, as written by a former primary's clock. Milliseconds. Routers of a
 * sharded cluster each have their own clock, so there the whole duration is tolerated.
 */
const MAX_CLOCK_SKEW_MS = 1000;

/** `_leases`: owners and expiry. Never deleted, so fences only grow. */
interface StoredLease {
  readonly _id: string;
  readonly owner: string | null;
  readonly fence: number;
  readonly begins?: Date;
  readonly expires: Date;
}

/** `_members`: a process's heartbeat and its self-description as a JSON string. */
interface StoredMember {
  readonly _id: string;
  readonly about: string;
  readonly begins?: Date;
  readonly expires: Date;
}

/** `_counters`: the sum of one window; the `_id` holds the window's length and the counter's name. */
interface StoredCounter {
  readonly _id: string;
  readonly sum: number;
  readonly at: Date;
  readonly expires: Date;
}

const UPSERTED = { upsert: true, returnDocument: 'after' } as const;

/** `_texts`: remembered values. */
interface StoredValue {
  readonly _id: string;
  readonly value: string;
  readonly fence: number;
}

/**
 * Coordination in MongoDB (4.4 or newer). Each operation is one atomic change of one document, computed by the server
 * with its own clock (`$$NOW`), so process clocks and races do not matter. In a sharded cluster the clock is that of
 * the router (`mongos`) in use; lease durations vary by the difference between routers.
 *
 * Opens without a server; each operation then throws CoordinationError until one is reachable.
 * @throws MongoParseError for an invalid URL; Error where a file that it names cannot be read
 */
export async function openMongoCoordination(
  options: MongoCoordinationOptions,
): Promise<Coordination> {
  const { clockForTests, ...connection } = options;
  return new MongoCoordination(shareConnection(connection), clockForTests);
}

const leasesIn = (db: Db) => db.collection<StoredLease>('_leases');
const membersIn = (db: Db) => db.collection<StoredMember>('_members');
const countersIn = (db: Db) => db.collection<StoredCounter>('_counters');
const valuesIn = (db: Db) => db.collection<StoredValue>('_texts');

class MongoCoordination implements Coordination {
  readonly jobs: MongoJobLeases;
  readonly #shared: SharedConnection;
  readonly #clock: Pick<Clock, 'now'> | undefined;
  #closed = false;
  #expiryEnsured: Promise<void> | undefined;

  constructor(shared: SharedConnection, clock: Pick<Clock, 'now'> | undefined) {
    this.#shared = shared;
    this.#clock = clock;
    this.jobs = new MongoJobLeases({
      run: (operation, act) => this.#run(operation, act),
      now: () => this.#now(),
      isAhead: (begins, ends) => this.#isAhead(`$${begins}`, `$${ends}`),
      ensureExpiry: (db) => this.#ensureExpiry(db),
    });
  }

  acquire(name: string, owner: string, ttl: number): Promise<Lease | null> {
    return this.#run('acquire', async (db) => {
      const me = { $literal: owner };
      const mine = { $eq: ['$owner', me] };
      const owned = { $ne: [{ $ifNull: ['$owner', null] }, null] };
      const others = { $and: [owned, await this.#isUnexpired()] };
      const theirs = { $and: [{ $not: [mine] }, others] };
      // Every expression sees the lease as it was: fields of one $set do not see each other.
      const take = {
        owner: { $cond: [mine, me, { $cond: [others, '$owner', me] }] },
        fence: {
          $cond: [{ $or: [mine, others] }, '$fence', { $add: [{ $ifNull: ['$fence', 0] }, 1] }],
        },
        begins: { $cond: [theirs, '$begins', this.#now()] },
        expires: { $cond: [theirs, '$expires', { $add: [this.#now(), ttl] }] },
      };
      const lease = await retryDuplicateKey(() =>
        leasesIn(db).findOneAndUpdate({ _id: name }, [{ $set: take }], UPSERTED),
      );
      return lease?.owner === owner ? { fence: lease.fence, remaining: ttl } : null;
    });
  }

  release(name: string, owner: string): Promise<void> {
    return this.#run('release', async (db) => {
      await leasesIn(db).updateOne({ _id: name, owner }, { $set: { owner: null } });
    });
  }

  heartbeat(id: string, about: JsonObject, ttl: number): Promise<void> {
    return this.#run('heartbeat', async (db) => {
      await this.#ensureExpiry(db);
      const life = {
        about: { $literal: JSON.stringify(about) },
        begins: this.#now(),
        expires: { $add: [this.#now(), ttl] },
      };
      await retryDuplicateKey(() =>
        membersIn(db).updateOne({ _id: id }, [{ $set: life }], { upsert: true }),
      );
    });
  }

  forget(id: string): Promise<void> {
    return this.#run('forget', async (db) => {
      await membersIn(db).deleteOne({ _id: id });
    });
  }

  alive(): Promise<readonly LiveMember[]> {
    return this.#run('alive', async (db) => {
      const members = await membersIn(db)
        .aggregate<Pick<StoredMember, '_id' | 'about'> & { readonly remaining: number }>([
          { $match: { $expr: await this.#isUnexpired() } },
          { $project: { about: 1, remaining: { $subtract: ['$expires', this.#now()] } } },
          { $sort: { _id: 1 } },
        ])
        .toArray();
      return members.map(({ _id, about, remaining }) => {
        return { id: _id, about: objectOf(about), remaining };
      });
    });
  }

  count(name: string, by: number, window: number): ReturnType<Coordination['count']> {
    return this.#run('count', async (db) => {
      await this.#ensureExpiry(db);
      const now = this.#now();
      const sinceEpoch = { $subtract: [now, new Date(0)] };
      const ends = { $add: [now, { $subtract: [window, { $mod: [sinceEpoch, window] }] }] };
      const sum = { $cond: [{ $eq: ['$expires', ends] }, { $add: ['$sum', by] }, by] };
      const counter = { _id: `${window} ${name}` };
      const change = [{ $set: { sum, expires: ends, at: now } }];
      const counted = await retryDuplicateKey(() =>
        countersIn(db).findOneAndUpdate(counter, change, UPSERTED),
      );
      if (counted === null) throw new CoordinationError(`no result from the counter ${name}`);
      return { sum: counted.sum, remaining: counted.expires.getTime() - counted.at.getTime() };
    });
  }

  readCount(name: string, window: number): ReturnType<Coordination['readCount']> {
    return this.#run('counted', async (db) => {
      const [counter] = await countersIn(db)
        .aggregate<{ readonly sum: number; readonly remaining: number }>([
          { $match: { _id: `${window} ${name}` } },
          { $project: { sum: 1, remaining: { $subtract: ['$expires', this.#now()] } } },
        ])
        .toArray();
      // A finished window, or a future one from before the clock was set back.
      if (counter === undefined || counter.remaining <= 0 || counter.remaining > window)
        return null;
      return { sum: counter.sum, remaining: counter.remaining };
    });
  }

  recall(name: string): Promise<string | null> {
    return this.#run('recall', async (db) => {
      return (await valuesIn(db).findOne({ _id: name }))?.value ?? null;
    });
  }

  remember(name: string, value: string, fence: number): Promise<boolean> {
    return this.#run('remember', async (db) => {
      try {
        // Two concurrent first writes conflict once; on the retry the document exists.
        const known = { _id: name, fence: { $lte: fence } };
        await retryDuplicateKey(() =>
          valuesIn(db).updateOne(known, { $set: { value, fence } }, { upsert: true }),
        );
        return true;
      } catch (error) {
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    });
  }

  async ping(): Promise<void> {
    this.#refuseWhenClosed();
    await this.#shared.connection.ping(unreachable);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#shared.release();
  }

  /** The present as an expression: the server's clock, except in tests. */
  #now(): string | Date {
    return this.#clock === undefined ? '$$NOW' : new Date(this.#clock.now());
  }

  /**
   * Whether a document has not expired. A document that starts in the future is ignored: the server's clock has been
   * set back since, and its end may lie hours ahead. Call inside `run`.
   */
  async #isUnexpired(): Promise<Document> {
    const ahead = await this.#isAhead('$begins', '$expires');
    return { $and: [{ $gt: ['$expires', this.#now()] }, { $not: [ahead] }] };
  }

  async #isAhead(start: string, end: string): Promise<Document> {
    const now = this.#now();
    const begins = { $ifNull: [start, now] };
    const isSharded = (await this.#shared.connection.deployment()) === 'sharded';
    const tolerated = isSharded
      ? { $max: [MAX_CLOCK_SKEW_MS, { $subtract: [end, begins] }] }
      : MAX_CLOCK_SKEW_MS;
    return { $gt: [begins, { $add: [now, tolerated] }] };
  }

  /**
   * Lets the server delete expired documents; nothing depends on it. Skipped with a test's clock, which may lie years
   * behind the server's. Runs once per process and is retried after a failure.
   */
  #ensureExpiry(db: Db): Promise<void> {
    if (this.#clock !== undefined) return Promise.resolve();
    const made = (this.#expiryEnsured ??= expireAfterAnHour(db));
    made.catch(() => {
      this.#expiryEnsured = undefined;
    });
    return made;
  }

  async #run<T>(operation: string, act: (db: Db) => Promise<T>): Promise<T> {
    this.#refuseWhenClosed();
    return this.#shared.connection.run(operation, unreachable, act);
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw new CoordinationError('Coordination is closed');
  }
}

async function expireAfterAnHour(db: Db): Promise<void> {
  for (const name of ['_members', '_counters', '_jobs', '_workers']) {
    await db.collection<Document>(name).createIndex({ expires: 1 }, { expireAfterSeconds: 3600 });
  }
}

/** Retries an upsert that collided with another insert of the same key. */
async function retryDuplicateKey<T>(upsert: () => Promise<T>): Promise<T> {
  try {
    return await upsert();
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return upsert();
  }
}

function objectOf(json: string): JsonObject {
  const value: unknown = JSON.parse(json);
  if (!isJsonObject(value)) throw new CoordinationError('a heartbeat is not a JSON object');
  return value;
}

function unreachable(message: string, cause: unknown): CoordinationError {
  return new CoordinationError(message, cause);
}
