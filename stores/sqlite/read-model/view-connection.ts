import { openDatabase, prepareForArrays, type Database, type Statement } from '../database.ts';
import { LAYOUT_VERSION } from './view-table.ts';

/** Prepared statements kept; the oldest is dropped first. */
const MAX_STATEMENTS = 200;

/** A read-only connection to a view's file, which keeps prepared statements by their SQL. */
export class ViewConnection {
  readonly database: Database;
  readonly #statements = new Map<string, Statement>();

  /**
   * @param immutable whether no file may be created beside it; see `DatabaseOptions`
   * @param busyTimeout milliseconds to wait for another connection's lock
   * @throws the driver's errors: `cannot-open` when the file is gone
   */
  constructor(file: string, immutable: boolean, busyTimeout: number) {
    this.database = openDatabase({
      file,
      what: 'view',
      version: LAYOUT_VERSION,
      migrate: () => undefined,
      readOnly: true,
      immutable,
      busyTimeout,
      cacheMiB: 8,
    });
  }

  /** A statement that returns rows as arrays. */
  prepared(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      const [oldest] = this.#statements.keys();
      if (this.#statements.size >= MAX_STATEMENTS && oldest !== undefined) {
        this.#statements.delete(oldest);
      }
      statement = prepareForArrays(this.database, sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
