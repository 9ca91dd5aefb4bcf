import type { AnyBulkWriteOperation, Collection, Db, Document } from 'mongodb';
import type {
  HeldJob,
  JobHolder,
  JobClaim,
  JobLease,
  JobLeases,
  TakenJob,
} from '../../scheduler/coordination.ts';
import { isDuplicateKey } from './driver-errors.ts';

/** How long leases that are over, and silent workers, are kept. Milliseconds. */
const KEPT_LEASES_MS = 86_400_000;
const KEPT_WORKERS_MS = 2 * 86_400_000;

/** `_jobs`: the latest lease of each job. */
interface StoredJob extends JobHolder {
  readonly _id: string;
  readonly lease: string;
  readonly begins: Date;
  readonly ends: Date;
  readonly deadline: Date;
  readonly losses: number;
  /** When the server may delete it. */
  readonly expires: Date;
}

/** `_workers`: when a worker was last heard of. */
interface StoredWorker {
  readonly _id: string;
  readonly seen: Date;
  readonly expires: Date;
}

/** The parts of the coordination store that leases of jobs need. */
export interface LeaseParts {
  run<T>(operation: string, act: (db: Db) => Promise<T>): Promise<T>;
  /** The present time, as an expression. */
  now(): string | Date;
  /** An expression: whether a document with `begins` and `expires` was written before the clock was set back. */
  isAhead(begins: string, ends: string): Promise<Document>;
  /** Lets the server delete expired documents. */
  ensureExpiry(db: Db): Promise<void>;
}

const jobsIn = (db: Db) => db.collection<StoredJob>('_jobs');
const workersIn = (db: Db) => db.collection<StoredWorker>('_workers');

/**
 * Leases of jobs. Each is one document, which the server changes atomically by its own clock. One call changes many.
 */
export class MongoJobLeases implements JobLeases {
  readonly #parts: LeaseParts;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  take(claims: readonly JobClaim[], ttl: number): Promise<readonly (TakenJob | HeldJob)[]> {
    if (claims.length === 0) return Promise.resolve([]);
    return this.#parts.run('take jobs', async (db) => {
      await this.#parts.ensureExpiry(db);
      const isFree = await this.#isFree();
      await writeAll(
        jobsIn(db),
        claims.map((claim) => ({
          updateOne: {
            filter: { _id: claim.job },
            update: [{ $set: this.#taken(claim, ttl, isFree) }],
            upsert: true,
          },
        })),
      );
      const held = await this.#held(db, { _id: { $in: claims.map(({ job }) => job) } });
      return claims.map(({ job, lease, holder }): TakenJob | HeldJob => {
        const found = held.get(job);
        if (found?.lease === lease) return { taken: true, losses: found.losses };
        // The lease was dropped in the meantime, so the job is free again.
        const free = { remaining: 0, timedOut: false, losses: 0 };
        return found ?? { taken: false, job, lease, holder, ...free };
      });
    });
  }

  renew(leases: readonly JobLease[], ttl: number): Promise<readonly (JobHolder | null)[]> {
    if (leases.length === 0) return Promise.resolve([]);
    return this.#parts.run('renew jobs', async (db) => {
      const lasts = await this.#lasts();
      const now = this.#parts.now();
      const ends = { $add: [now, ttl] };
      const expires = { $add: [now, ttl + KEPT_LEASES_MS] };
      await writeAll(
        jobsIn(db),
        leases.map(({ job, lease }) => ({
          updateOne: {
            filter: { _id: job, lease, $expr: lasts },
            update: [{ $set: { begins: now, ends, expires } }],
          },
        })),
      );
      return this.#current(db, leases, lasts);
    });
  }

  check(leases: readonly JobLease[]): Promise<readonly (JobHolder | null)[]> {
    if (leases.length === 0) return Promise.resolve([]);
    return this.#parts.run('check jobs', async (db) =>
      this.#current(db, leases, await this.#lasts()),
    );
  }

  async drop(leases: readonly JobLease[]): Promise<void> {
    if (leases.length === 0) return;
    await this.#parts.run('drop jobs', async (db) => {
      const drops = leases.map(({ job, lease }) => ({
        deleteOne: { filter: { _id: job, lease } },
      }));
      await jobsIn(db).bulkWrite(drops, { ordered: false });
    });
  }

  look(jobs: readonly string[]): Promise<readonly (HeldJob | null)[]> {
    return this.#parts.run('look at jobs', async (db) => {
      const held = await this.#held(db, { _id: { $in: [...jobs] } });
      return jobs.map((job) => held.get(job) ?? null);
    });
  }

  all(): Promise<readonly HeldJob[]> {
    return this.#parts.run('list jobs', async (db) => [...(await this.#held(db, {})).values()]);
  }

  async see(workers: readonly string[]): Promise<void> {
    if (workers.length === 0) return;
    await this.#parts.run('see workers', async (db) => {
      await this.#parts.ensureExpiry(db);
      const now = this.#parts.now();
      const life = { seen: now, expires: { $add: [now, KEPT_WORKERS_MS] } };
      await writeAll(
        workersIn(db),
        workers.map((id) => ({
          updateOne: { filter: { _id: id }, update: [{ $set: life }], upsert: true },
        })),
      );
    });
  }

  seen(): Promise<ReadonlyMap<string, number>> {
    return this.#parts.run('list workers', async (db) => {
      const ago = { $subtract: [this.#parts.now(), '$seen'] };
      const found = await workersIn(db)
        .aggregate<{ readonly _id: string; readonly ago: number }>([{ $project: { ago } }])
        .toArray();
      return new Map(
        found.filter((each) => each.ago <= KEPT_WORKERS_MS).map((each) => [each._id, each.ago]),
      );
    });
  }

  /** The fields after a claim. Every expression sees the document before the change. */
  #taken({ lease, holder, limit }: JobClaim, ttl: number, isFree: Document): Document {
    const now = this.#parts.now();
    const { worker, agent, run } = holder;
    const mine = {
      lease: { $literal: lease },
      worker: { $literal: worker },
      agent: { $literal: agent },
      run: { $literal: run },
      begins: now,
      ends: { $add: [now, ttl] },
      deadline: { $add: [now, limit] },
      expires: { $add: [now, ttl + KEPT_LEASES_MS] },
      // A new document has no losses.
      losses: { $add: [{ $ifNull: ['$losses', -1] }, 1] },
    };
    return Object.fromEntries(
      Object.entries(mine).map(([field, value]) => [
        field,
        { $cond: [isFree, value, `$${field}`] },
      ]),
    );
  }

  /** A job without a lease, or whose lease was lost. A job that timed out is not free. */
  async #isFree(): Promise<Document> {
    const now = this.#parts.now();
    const isNew = { $eq: [{ $ifNull: ['$lease', null] }, null] };
    const isOver = { $lte: [{ $ifNull: ['$ends', now] }, now] };
    const isLost = { $lte: [{ $ifNull: ['$ends', now] }, { $ifNull: ['$deadline', now] }] };
    const ahead = await this.#parts.isAhead('begins', 'ends');
    return { $or: [isNew, { $and: [isOver, isLost] }, ahead] };
  }

  async #lasts(): Promise<Document> {
    const now = this.#parts.now();
    const ahead = await this.#parts.isAhead('begins', 'ends');
    return { $and: [{ $gt: ['$ends', now] }, { $gt: ['$deadline', now] }, { $not: [ahead] }] };
  }

  async #current(
    db: Db,
    leases: readonly JobLease[],
    lasts: Document,
  ): Promise<readonly (JobHolder | null)[]> {
    const jobs = leases.map(({ job }) => job);
    const found = await jobsIn(db)
      .find({ _id: { $in: jobs }, $expr: lasts })
      .toArray();
    const current = new Map(found.map((each) => [each._id, each]));
    return leases.map(({ job, lease }) => {
      const held = current.get(job);
      if (held?.lease !== lease) return null;
      const { worker, agent, run } = held;
      return { worker, agent, run };
    });
  }

  async #held(db: Db, match: Document): Promise<ReadonlyMap<string, HeldJob>> {
    const now = this.#parts.now();
    const ahead = await this.#parts.isAhead('begins', 'ends');
    const fields = { lease: 1, worker: 1, agent: 1, run: 1, losses: 1 };
    const toEnd = { $subtract: ['$ends', now] };
    const toDeadline = { $subtract: ['$deadline', now] };
    const found = await jobsIn(db)
      .aggregate<
        Pick<StoredJob, '_id' | 'lease' | 'worker' | 'agent' | 'run' | 'losses'> & {
          readonly toEnd: number;
          readonly toDeadline: number;
          readonly ahead: boolean;
        }
      >([{ $match: match }, { $project: { ...fields, toEnd, toDeadline, ahead } }])
      .toArray();
    return new Map(
      found.map(({ _id: job, lease, worker, agent, run, losses, ...times }) => {
        const remaining = times.ahead ? 0 : Math.min(times.toEnd, times.toDeadline);
        const timedOut = !times.ahead && remaining <= 0 && times.toDeadline < times.toEnd;
        const holder = { worker, agent, run };
        return [job, { taken: false, job, lease, holder, remaining, timedOut, losses }];
      }),
    );
  }
}

/**
 * Writes in any order. Upserts that collided with another insert of the same key are repeated, and then update the
 * document.
 */
async function writeAll<T extends Document>(
  collection: Collection<T>,
  writes: readonly AnyBulkWriteOperation<T>[],
): Promise<void> {
  const write = (): Promise<unknown> => collection.bulkWrite([...writes], { ordered: false });
  try {
    await write();
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    await write();
  }
}
