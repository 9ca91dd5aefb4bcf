import { prepareForArrays, type Database, type Statement } from '../../database.ts';

/** A stream as the writer remembers it. */
export interface CachedStream {
  readonly id: number;
  /** Of its last event; -1 when it never had one. */
  revision: number;
}

/** Streams remembered at least, and twice as many at most; more would cost the garbage collector more than lookups. */
const MIN_CACHED_STREAMS = 4_000;

/**
 * Remembers where streams end, as most appends go to a recently written stream. Must be dropped when another process has
 * written, and after a rollback.
 */
export class StreamCache {
  readonly #select: Statement;
  readonly #insert: Statement;
  readonly #selectType: Statement;
  readonly #insertType: Statement;
  readonly #setTruncated: Statement;
  readonly #first: Statement;
  readonly #delete: Statement;
  #young = new Map<string, CachedStream>();
  #old = new Map<string, CachedStream>();
  readonly #types = new Map<string, number>();

  constructor(database: Database) {
    this.#select = prepareForArrays(
      database,
      'SELECT id, max(truncated_revision, coalesce((SELECT max(revision) FROM events WHERE stream = streams.id), -1)) FROM streams WHERE name = ?',
    );
    this.#insert = database.prepare(
      'INSERT INTO streams (name) VALUES (?) ON CONFLICT (name) DO NOTHING',
    );
    this.#selectType = prepareForArrays(database, 'SELECT id FROM types WHERE name = ?');
    this.#insertType = database.prepare('INSERT INTO types (name) VALUES (?)');
    this.#setTruncated = database.prepare('UPDATE streams SET truncated_revision = ? WHERE id = ?');
    this.#first = prepareForArrays(database, 'SELECT min(revision) FROM events WHERE stream = ?');
    this.#delete = database.prepare('DELETE FROM events WHERE stream = ? AND revision < ?');
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
      const { changes, lastInsertRowid } = this.#insert.run(name);
      if (changes === 1) return this.#remember(name, { id: Number(lastInsertRowid), revision: -1 });
    }
    const row = this.#select.get(name);
    if (row === undefined) return undefined;
    return this.#remember(name, { id: Number(row[0]), revision: Number(row[1]) });
  }

  /** The number of an event type, created when new. */
  typeId(name: string): number {
    const known = this.#types.get(name);
    if (known !== undefined) return known;
    const row = this.#selectType.get(name);
    const id = Number(row === undefined ? this.#insertType.run(name).lastInsertRowid : row[0]);
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
    const first = this.#first.get(stream.id)?.[0];
    const end = typeof first === 'number' ? Math.min(before, first + most) : before;
    const { changes } = this.#delete.run(stream.id, end);
    this.#setTruncated.run(stream.revision, stream.id);
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
