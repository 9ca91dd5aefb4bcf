import type { StatementCache } from '../../statement-cache.ts';

/** A stream as the writer remembers it. */
export interface CachedStream {
  readonly id: number;
  /** The revision of its last event; -1 if it never had an event. */
  revision: number;
}

/**
 * At least this many streams are remembered, and at most twice as many. More would cost the garbage collector more than
 * lookups.
 */
const MIN_CACHED_STREAMS = 4_000;

const SELECT = `
  SELECT id, max(truncated_revision,
    coalesce((SELECT max(revision) FROM events WHERE stream = streams.id), -1))
  FROM streams WHERE name = ?`;
const INSERT = 'INSERT INTO streams (name) VALUES (?) ON CONFLICT (name) DO NOTHING';
const FIRST = 'SELECT min(revision) FROM events WHERE stream = ?';
const DELETE = 'DELETE FROM events WHERE stream = ? AND revision < ?';
const SET_TRUNCATED = 'UPDATE streams SET truncated_revision = ? WHERE id = ?';

/**
 * Remembers where streams end, as most appends go to a recently written stream. Must be dropped when another process has
 * written, and after a rollback.
 */
export class StreamCache {
  readonly #statements: StatementCache;
  #young = new Map<string, CachedStream>();
  #old = new Map<string, CachedStream>();
  readonly #types = new Map<string, number>();

  constructor(statements: StatementCache) {
    this.#statements = statements;
  }

  forget(): void {
    this.#young.clear();
    this.#old.clear();
    this.#types.clear();
  }

  /** The stream; undefined when missing. @param expectedNew insert before looking, and create it when missing */
  find(name: string, expectedNew: boolean): CachedStream | undefined {
    const young = this.#young.get(name);
    if (young !== undefined) return young;
    const old = this.#old.get(name);
    if (old !== undefined) return this.#remember(name, old);
    if (expectedNew) {
      const { changes, lastInsertRowid } = this.#statements.prepared(INSERT).run(name);
      if (changes === 1) return this.#remember(name, { id: Number(lastInsertRowid), revision: -1 });
    }
    const row = this.#statements.prepared(SELECT).get(name);
    if (row === undefined) return undefined;
    return this.#remember(name, { id: Number(row[0]), revision: Number(row[1]) });
  }

  /** The number of an event type, created when new. */
  typeId(name: string): number {
    const known = this.#types.get(name);
    if (known !== undefined) return known;
    const row = this.#statements.prepared('SELECT id FROM types WHERE name = ?').get(name);
    const insert = this.#statements.prepared('INSERT INTO types (name) VALUES (?)');
    const id = Number(row === undefined ? insert.run(name).lastInsertRowid : row[0]);
    this.#types.set(name, id);
    return id;
  }

  /**
   * Removes a stream's oldest events before a revision, up to a limit. Its revision is kept.
   * @returns how many were removed, and whether these were all
   */
  truncate(
    name: string,
    before: number,
    most: number,
  ): { readonly removed: number; readonly all: boolean } {
    const stream = this.find(name, false);
    if (stream === undefined) return { removed: 0, all: true };
    const [first] = this.#statements.prepared(FIRST).get(stream.id) ?? [];
    const end = typeof first === 'number' ? Math.min(before, first + most) : before;
    const { changes } = this.#statements.prepared(DELETE).run(stream.id, end);
    this.#statements.prepared(SET_TRUNCATED).run(stream.revision, stream.id);
    return { removed: changes, all: end >= before };
  }

  #remember(name: string, stream: CachedStream): CachedStream {
    if (this.#young.size >= MIN_CACHED_STREAMS) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(name, stream);
    return stream;
  }
}
