import { prepareForArrays, type Database, type Statement } from './database.ts';

/** Prepared statements of one connection, by their SQL. Beyond its limit, the oldest is dropped. */
export class StatementCache {
  readonly #database: Database;
  readonly #limit: number;
  readonly #statements = new Map<string, Statement>();

  constructor(database: Database, limit = 200) {
    this.#database = database;
    this.#limit = limit;
  }

  /** A statement that returns rows as arrays. @throws the driver's errors */
  prepared(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      const [oldest] = this.#statements.keys();
      if (this.#statements.size >= this.#limit && oldest !== undefined) {
        this.#statements.delete(oldest);
      }
      statement = prepareForArrays(this.#database, sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
