import type { EncodedEvent } from '../../../../domain/event-store.ts';
import { execute, faultOf, type Database } from '../../database.ts';
import { StatementCache } from '../../statement-cache.ts';
import { WriteLock } from './write-lock.ts';
import type {
  CommitTiming,
  SequenceResult,
  WriteAppend,
  WriteFailure,
  WriteSequence,
  Written,
  WrittenAppend,
} from './protocol.ts';
import { StreamCache, type CachedStream } from './stream-cache.ts';

/** The last revision of a stream without events. */
const NO_EVENTS = -1;
/** Most events removed per transaction, as no process can write in the meantime. */
const MAX_REMOVED_EVENTS = 500;

const HEAD = 'SELECT head FROM log';
const SET_HEAD = 'UPDATE log SET head = ?';
const INSERT = `
  INSERT INTO events (position, stream, revision, id, type, created_at, data, metadata)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const UNDO = 'DELETE FROM events WHERE position > ?';
const ID_AT = 'SELECT id, position FROM events WHERE stream = ? AND revision = ?';
const PLACE = `
  SELECT events.stream, revision, streams.name
  FROM events JOIN streams ON streams.id = events.stream WHERE events.id = ?`;

/** A truncation of a stream before a revision. */
export interface Truncation {
  readonly stream: string;
  readonly before: number;
}

/** `COMMIT` failed, and may or may not be found written after a crash. */
export class UnsureCommitError extends Error {
  override readonly name = 'UnsureCommitError';
}

/**
 * Writes the log over one connection, in the writer thread. Each call is one transaction, all or nothing. Refused appends
 * are detected before writing, not by exceptions.
 */
export class LogWriter {
  readonly #database: Database;
  readonly #lock: WriteLock;
  readonly #streams: StreamCache;
  readonly #statements: StatementCache;
  /** The log's head, as this transaction knows it. */
  #position = 0;

  constructor(database: Database, lockTimeout: number) {
    this.#database = database;
    this.#lock = new WriteLock(database, lockTimeout);
    this.#statements = new StatementCache(database);
    this.#streams = new StreamCache(this.#statements);
  }

  /**
   * Writes sequences in order. Blocks until they are durable.
   * @param take called once the lock is held, so that sequences arriving meanwhile are included
   * @throws the driver's error when nothing was written; {@link UnsureCommitError}
   */
  write(take: () => readonly WriteSequence[]): Written {
    return this.#transaction((timing) => {
      const sequences = take();
      const createdAt = Date.now();
      const results: SequenceResult[] = [];
      const before = this.#position;
      for (const { ticket, appends } of sequences) {
        const appended: WrittenAppend[] = [];
        let failure: WriteFailure | undefined;
        for (const append of appends) {
          const outcome = this.#append(append, createdAt);
          if ('code' in outcome) {
            failure = outcome;
            break;
          }
          appended.push(outcome);
        }
        results.push({ ticket, appended, failure });
      }
      if (this.#position !== before) execute(this.#statements.prepared(SET_HEAD), this.#position);
      return { createdAt, results, timing };
    });
  }

  /**
   * Removes the oldest events of streams, within a limit. Blocks until that is durable.
   * @returns the number of completed truncations; the next one needs another call
   * @throws the driver's error when nothing was removed; {@link UnsureCommitError}
   */
  truncate(cuts: readonly Truncation[]): number {
    return this.#transaction(() => {
      let left = MAX_REMOVED_EVENTS;
      for (const [done, { stream, before }] of cuts.entries()) {
        const { removed, all } = this.#streams.truncate(stream, before, left);
        left -= removed;
        if (!all) return done;
      }
      return cuts.length;
    });
  }

  #transaction<T>(work: (timing: CommitTiming) => T): T {
    const { waited, othersWrote } = this.#lock.acquire();
    const timing = { waitedForLock: waited, writing: 0 };
    const since = performance.now();
    let committing = false;
    try {
      if (othersWrote) {
        this.#streams.forget();
        this.#position = Number(this.#statements.prepared(HEAD).get()?.[0]);
      }
      const result = work(timing);
      committing = true;
      execute(this.#statements.prepared('COMMIT'));
      this.#lock.released();
      timing.writing = performance.now() - since;
      return result;
    } catch (error) {
      this.#rollback();
      if (committing && faultOf(error) === 'io') {
        throw new UnsureCommitError(error instanceof Error ? error.message : String(error), {
          cause: error,
        });
      }
      throw error;
    }
  }

  #rollback(): void {
    // SQLite rolls back by itself after some faults.
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
    this.#lock.released();
    this.#streams.forget();
    this.#lock.forget();
  }

  /** Appends, or recognises a repetition. A failed append leaves the transaction usable. */
  #append(append: WriteAppend, createdAt: number): WrittenAppend | WriteFailure {
    const { expected, events } = append;
    const stream = this.#streams.find(append.stream, typeof expected !== 'number');
    const last = stream?.revision ?? NO_EVENTS;
    if (expected === 'any') {
      const first = last === NO_EVENTS ? undefined : events[0];
      const place = first && this.#statements.prepared(PLACE).get(first.id);
      if (stream !== undefined && place?.[0] === stream.id) {
        return this.#duplicate(stream, Number(place?.[1]), append);
      }
    } else {
      const expectedLast = expected === 'none' ? NO_EVENTS : expected;
      if (stream !== undefined && expectedLast < last) {
        return this.#duplicate(stream, expectedLast + 1, append);
      }
      if (expectedLast !== last) return conflict(append, last);
    }
    // The stream is missing only if a revision was expected, so this is a conflict.
    if (stream === undefined) return conflict(append, NO_EVENTS);
    return this.#insertAll(stream, append, createdAt);
  }

  #insertAll(
    stream: CachedStream,
    append: WriteAppend,
    createdAt: number,
  ): WrittenAppend | WriteFailure {
    const insert = this.#statements.prepared(INSERT);
    const before = this.#position;
    let revision = stream.revision;
    for (const { id, type, data, metadata } of append.events) {
      try {
        execute(
          insert,
          this.#position + 1,
          stream.id,
          revision + 1,
          id,
          this.#streams.typeId(type),
          createdAt,
          data,
          metadata,
        );
      } catch (error) {
        if (faultOf(error) !== 'constraint') throw error;
        const failure = this.#explain(append, id, error);
        this.#statements.prepared(UNDO).run(before);
        this.#position = before;
        return failure;
      }
      this.#position += 1;
      revision += 1;
    }
    stream.revision = revision;
    return { revision, position: this.#position, duplicate: false };
  }

  /** The stream is further than expected: a repetition if the same ids are at that place. */
  #duplicate(
    stream: CachedStream,
    revision: number,
    append: WriteAppend,
  ): WrittenAppend | WriteFailure {
    let position = 0;
    for (const [i, { id }] of append.events.entries()) {
      const row = this.#statements.prepared(ID_AT).get(stream.id, revision + i);
      if (row?.[0] !== id) return conflict(append, stream.revision);
      position = Number(row?.[1]);
    }
    return { revision: revision + append.events.length - 1, position, duplicate: true };
  }

  /** Only an existing id violates a constraint; otherwise the file is damaged. */
  #explain(append: WriteAppend, id: EncodedEvent['id'], error: unknown): WriteFailure {
    const place = this.#statements.prepared(PLACE).get(id);
    if (place === undefined) throw error;
    return {
      code: 'INVALID_EVENT',
      stream: append.stream,
      message: `event id ${id} already belongs to revision ${String(place[1])} of ${String(place[2])}`,
    };
  }
}

function conflict({ stream, expected }: WriteAppend, last: number): WriteFailure {
  const is = last === NO_EVENTS ? 'has no events' : `is at revision ${last}`;
  const actual = last === NO_EVENTS ? 'none' : last;
  const message = `${stream} ${is}, expected ${expected}`;
  return { code: 'CONFLICT', message, stream, expected, actual };
}
