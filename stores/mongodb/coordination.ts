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
import { isDuplicateKey } from './failures.ts';

/** {@link openMongoCoordination}'s options. */
export interface MongoCoordinationOptions extends MongoOptions {
  /** In place of the server's clock, which no test can move. */
  readonly clockForTests?: Pick<Clock, 'now'>;
}

/**
 * How far ahead of the present a time may lie that was written a moment ago by another clock: of a primary before.
 * Milliseconds. Routers of a sharded cluster tell the time at once, each its own: there it may be as far as what was
 * written lasts.
 */
const AHEAD = 1000;

/** `_leases`: who has what, until when. Never deleted, so that fences only grow. */
interface StoredLease {
  readonly _id: string;
  readonly owner: string | null;
  readonly fence: number;
  readonly begins?: Date;
  readonly expires: Date;
}

/** `_members`: a process's life, and what it says of itself as JSON text. */
interface StoredMember {
  readonly _id: string;
  readonly about: string;
  readonly begins?: Date;
  readonly expires: Date;
}

/** `_counters`: one window's sum; the `_id` names the window's length and the counter. */
interface StoredCounter {
  readonly _id: string;
  readonly sum: number;
  readonly at: Date;
  readonly expires: Date;
}

/** `_texts`: what is remembered. */
interface StoredText {
  readonly _id: string;
  readonly value: string;
  readonly fence: number;
}

/**
 * Coordination in MongoDB (4.4 or newer). Each operation is one atomic change of one document, computed by the
 * server with its own clock (`$$NOW` in an update's pipeline), so neither the processes' clocks nor races matter. In a
 * sharded cluster that is the clock of the router (`mongos`) which passes the operation on, and drivers take now one,
 * now another: by what those are apart, a lease lasts shorter or longer than it should.
 *
 * Opens without a server, too: each operation then throws CoordinationError, until there is one.
 *
 * @throws MongoParseError for a URL that is none; Error where a file that it names can't be read
 */
export function openMongoCoordination(options: MongoCoordinationOptions): Promise<Coordination> {
  const { clockForTests, ...connection } = options;
  // In a promise's function, so that a bad URL rejects.
  return new Promise((resolve) => {
    resolve(new MongoCoordination(shareConnection(connection), clockForTests));
  });
}

class MongoCoordination implements Coordination {
  readonly #shared: SharedConnection;
  readonly #clock: Pick<Clock, 'now'> | undefined;
  #closed = false;
  #tidied: Promise<void> | undefined;

  constructor(shared: SharedConnection, clock: Pick<Clock, 'now'> | undefined) {
    this.#shared = shared;
    this.#clock = clock;
  }

  acquire(name: string, owner: string, ttl: number): Promise<Lease | null> {
    return this.#run('acquire', async (db) => {
      const me = { $literal: owner };
      const mine = { $eq: ['$owner', me] };
      const owned = { $ne: [{ $ifNull: ['$owner', null] }, null] };
      const others = { $and: [owned, await this.#inForce()] };
      const theirs = { $and: [{ $not: [mine] }, others] };
      // All see the lease as it was: the fields of one $set do not see each other.
      const take = {
        owner: { $cond: [mine, me, { $cond: [others, '$owner', me] }] },
        fence: {
          $cond: [{ $or: [mine, others] }, '$fence', { $add: [{ $ifNull: ['$fence', 0] }, 1] }],
        },
        begins: { $cond: [theirs, '$begins', this.#now()] },
        expires: { $cond: [theirs, '$expires', { $add: [this.#now(), ttl] }] },
      };
      const lease = await twice(() =>
        db.collection<StoredLease>('_leases').findOneAndUpdate({ _id: name }, [{ $set: take }], {
          upsert: true,
          returnDocument: 'after',
        }),
      );
      return lease?.owner === owner ? { fence: lease.fence, remaining: ttl } : null;
    });
  }

  release(name: string, owner: string): Promise<void> {
    return this.#run('release', async (db) => {
      await db
        .collection<StoredLease>('_leases')
        .updateOne({ _id: name, owner }, { $set: { owner: null } });
    });
  }

  heartbeat(id: string, about: JsonObject, ttl: number): Promise<void> {
    return this.#run('heartbeat', async (db) => {
      await this.#tidy(db);
      const life = {
        about: { $literal: JSON.stringify(about) },
        begins: this.#now(),
        expires: { $add: [this.#now(), ttl] },
      };
      await twice(() =>
        db
          .collection<StoredMember>('_members')
          .updateOne({ _id: id }, [{ $set: life }], { upsert: true }),
      );
    });
  }

  forget(id: string): Promise<void> {
    return this.#run('forget', async (db) => {
      await db.collection<StoredMember>('_members').deleteOne({ _id: id });
    });
  }

  alive(): Promise<readonly LiveMember[]> {
    return this.#run('alive', async (db) => {
      const members = await db
        .collection<StoredMember>('_members')
        .aggregate<{ readonly _id: string; readonly about: string; readonly remaining: number }>([
          { $match: { $expr: await this.#inForce() } },
          { $project: { about: 1, remaining: { $subtract: ['$expires', this.#now()] } } },
          { $sort: { _id: 1 } },
        ])
        .toArray();
      return members.map(({ _id, about, remaining }) => ({
        id: _id,
        about: objectOf(about),
        remaining,
      }));
    });
  }

  count(
    name: string,
    by: number,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number }> {
    return this.#run('count', async (db) => {
      await this.#tidy(db);
      const now = this.#now();
      const sinceEpoch = { $subtract: [now, new Date(0)] };
      const ends = { $add: [now, { $subtract: [window, { $mod: [sinceEpoch, window] }] }] };
      const counted = await twice(() =>
        db.collection<StoredCounter>('_counters').findOneAndUpdate(
          { _id: `${window} ${name}` },
          [
            {
              $set: {
                sum: { $cond: [{ $eq: ['$expires', ends] }, { $add: ['$sum', by] }, by] },
                expires: ends,
                at: now,
              },
            },
          ],
          { upsert: true, returnDocument: 'after' },
        ),
      );
      if (counted === null) throw new CoordinationError(`the counter ${name} gave no answer`);
      return { sum: counted.sum, remaining: counted.expires.getTime() - counted.at.getTime() };
    });
  }

  counted(
    name: string,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number } | null> {
    return this.#run('counted', async (db) => {
      const [counter] = await db
        .collection<StoredCounter>('_counters')
        .aggregate<{ readonly sum: number; readonly remaining: number }>([
          { $match: { _id: `${window} ${name}` } },
          { $project: { sum: 1, remaining: { $subtract: ['$expires', this.#now()] } } },
        ])
        .toArray();
      // Of another window: one that is over, or one that lay ahead until the clock was put back.
      if (counter === undefined || counter.remaining <= 0 || counter.remaining > window)
        return null;
      return { sum: counter.sum, remaining: counter.remaining };
    });
  }

  recall(name: string): Promise<string | null> {
    return this.#run('recall', async (db) => {
      const text = await db.collection<StoredText>('_texts').findOne({ _id: name });
      return text?.value ?? null;
    });
  }

  remember(name: string, value: string, fence: number): Promise<boolean> {
    return this.#run('remember', async (db) => {
      try {
        // Refused once, it may be that two remembered the first text at once: then it is there now.
        await twice(() =>
          db
            .collection<StoredText>('_texts')
            .updateOne(
              { _id: name, fence: { $lte: fence } },
              { $set: { value, fence } },
              { upsert: true },
            ),
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

  /** The present moment as the server computes it, within an expression. */
  #now(): string | Date {
    return this.#clock === undefined ? '$$NOW' : new Date(this.#clock.now());
  }

  /**
   * Whether a document has not run out. One that was written at a time that lies ahead says nothing: the server's clock
   * was put back since, and its end may lie hours ahead. Inside of `run`.
   */
  async #inForce(): Promise<Document> {
    const now = this.#now();
    const begins = { $ifNull: ['$begins', now] };
    const isSharded = (await this.#shared.connection.deployment()) === 'sharded';
    const ahead = isSharded ? { $max: [AHEAD, { $subtract: ['$expires', begins] }] } : AHEAD;
    return { $and: [{ $gt: ['$expires', now] }, { $lte: [begins, { $add: [now, ahead] }] }] };
  }

  /**
   * Lets the server clear away what has run out. Only tidiness, nothing relies on it; and not with a test's
   * clock, to which the server's own would be years ahead. Once for each process; when it fails, so does
   * the call, and the next one tries again.
   */
  #tidy(db: Db): Promise<void> {
    if (this.#clock !== undefined) return Promise.resolve();
    const made = (this.#tidied ??= expireAfterAnHour(db));
    made.catch(() => {
      this.#tidied = undefined;
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
  for (const name of ['_members', '_counters']) {
    await db.collection<Document>(name).createIndex({ expires: 1 }, { expireAfterSeconds: 3600 });
  }
}

/** Tries an upsert again that met another of the same key; the document is there then. */
async function twice<T>(upsert: () => Promise<T>): Promise<T> {
  try {
    return await upsert();
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return upsert();
  }
}

function objectOf(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) throw new CoordinationError('a heartbeat holds no object');
  return value;
}

function unreachable(message: string, cause: unknown): CoordinationError {
  return new CoordinationError(message, cause);
}
