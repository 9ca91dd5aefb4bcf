import { existsSync } from 'node:fs';
import type { StreamShare } from '../../../../domain/stream-share.ts';
import {
  ReadModelError,
  type Projection,
  type WriterOptions,
} from '../../../../projections/read-model.ts';
import { inTransaction, type Database } from '../../database.ts';
import { addTallies } from '../tallies.ts';
import type { ViewFiles } from '../view-files.ts';
import type { Column } from '../view-table.ts';
import { fillMark } from './fill-mark.ts';

/** The shares beside the first one, where several writers fill a generation side by side. */
export class OtherShares {
  readonly #files: ViewFiles;
  readonly #projection: Projection;
  readonly #generation: number;
  readonly #first: StreamShare;

  constructor(files: ViewFiles, projection: Projection, options: WriterOptions) {
    this.#files = files;
    this.#projection = projection;
    this.#generation = options.generation;
    this.#first = options.share?.index === 0 ? options.share : { index: 0, of: 1 };
  }

  /**
   * Adds their documents to those of the first share, in one transaction that also marks the generation whole, and
   * deletes their files. All shares must be at the same position.
   * @param database of the first share, outside a transaction
   * @param fence of the writer
   * @throws ReadModelError where a share is missing or at another position; the driver's errors
   */
  mergeInto(database: Database, columns: readonly Column[], fence: number): void {
    const files = Array.from({ length: this.#first.of - 1 }, (_, n) =>
      this.#files.pathOf(this.#projection, this.#generation, n + 1),
    );
    const attached: string[] = [];
    try {
      for (const file of files) {
        // ATTACH would create a missing file.
        if (!existsSync(file)) throw mergeError(file, 'is missing');
        const name = `share_${attached.length + 1}`;
        database.prepare(`ATTACH DATABASE ? AS ${name}`).run(file);
        attached.push(name);
        // Only read, and deleted afterwards.
        database.exec(`PRAGMA ${name}.synchronous = OFF`);
      }
      inTransaction(database, () => this.#add(database, columns, files, fence));
    } finally {
      for (const name of attached) database.exec(`DETACH DATABASE ${name}`);
    }
    this.#delete();
  }

  /** Deletes files that an overtaken writer may have recreated after the merge. */
  deleteLeftovers(): void {
    if (this.#first.of > 1) this.#delete();
  }

  #add(database: Database, columns: readonly Column[], files: readonly string[], fence: number) {
    const main = checkpointIn(database, 'main');
    if (main['filling'] !== fillMark(this.#first)) {
      throw mergeError('the view', 'has its shares already');
    }
    // Inserted share by share, each key would change another page of the index. It is rebuilt at the end.
    database.exec('DROP INDEX IF EXISTS main.documents_key');
    const names = ['key', 'position', ...columns.map(({ name }) => name), 'document'].join(', ');
    let landmark = main['landmark'] ?? null;
    for (const [n, file] of files.entries()) {
      const from = `share_${n + 1}`;
      const part = checkpointIn(database, from);
      if (part['filling'] !== fillMark({ index: n + 1, of: this.#first.of })) {
        throw mergeError(file, 'is not this share');
      }
      if (part['position'] !== main['position']) throw mergeError(file, 'is at another position');
      landmark ??= part['landmark'] ?? null;
      database.exec(
        `INSERT INTO main.documents (${names}) SELECT ${names} FROM ${from}.documents ORDER BY id`,
      );
      addTallies(database, this.#projection, from);
    }
    database
      .prepare('UPDATE main.checkpoint SET landmark = ?, filling = ?, fence = ?')
      .run(landmark, fillMark(null), fence);
  }

  #delete(): void {
    this.#files.exclusively(() => this.#files.deleteShares(this.#projection, this.#generation));
  }
}

function checkpointIn(database: Database, name: string) {
  return database.prepare(`SELECT position, landmark, filling FROM ${name}.checkpoint`).get() ?? {};
}

function mergeError(what: string, why: string): ReadModelError {
  return new ReadModelError('UNAVAILABLE', `cannot merge the shares: ${what} ${why}`);
}
