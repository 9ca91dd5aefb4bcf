import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Projection } from '../../../projections/read-model.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import {
  describeFault,
  faultOf,
  inTransaction,
  openDatabase,
  openUnchanged,
  type Database,
} from '../database.ts';
import { deleteDatabase } from '../database-file.ts';

/** The register of the views in their folder: without it none can be read. */
export function registerFile(directory: string): string {
  return join(directory, 'views.db');
}

/**
 * The files of the views: one a generation, `<name>-s<schema>-g<generation>.db`, and the register
 * `views.db`, which says which generation of each (name, schema) is live. Files are made and deleted only
 * while the register is locked, so that no process deletes what another is just making. While a generation is filled
 * by several threads, shares of it lie beside it in `<name>-s<schema>-g<generation>.share<index>.db`.
 */
export class ViewFiles {
  /** Whether they are only looked at: nothing is made, changed or deleted. */
  readonly readOnly: boolean;
  readonly #directory: string;
  readonly #register: Database;
  readonly #selectLive;

  constructor(directory: string, telemetry: Telemetry, readOnly = false) {
    this.#directory = directory;
    this.readOnly = readOnly;
    const file = registerFile(directory);
    this.#register = readOnly
      ? openUnchanged({ ...register, file })
      : openRegister(file, telemetry);
    this.#selectLive = this.#register.prepare(
      'SELECT generation FROM live WHERE name = ? AND schema = ?',
    );
  }

  /**
   * The path of a generation's file, there or not.
   * @param share of which there is a file beside it while the generation is filled; default: that of the generation itself
   */
  pathOf(projection: Projection, generation: number, share = 0): string {
    const suffix = share === 0 ? '' : `${SHARE}${String(share)}`;
    return join(this.#directory, `${prefixOf(projection)}${String(generation)}${suffix}.db`);
  }

  /** Deletes a generation with what lies beside it. Inside {@link exclusively}. */
  delete(projection: Projection, generation: number): void {
    // The shares first: what is left of a generation is found by its own file.
    this.deleteShares(projection, generation);
    deleteDatabase(this.pathOf(projection, generation));
  }

  /** Deletes the files of shares that were taken in, or are not to be. Inside {@link exclusively}. */
  deleteShares(projection: Projection, generation: number): void {
    const prefix = `${prefixOf(projection)}${String(generation)}${SHARE}`;
    for (const name of readdirSync(this.#directory)) {
      if (name.startsWith(prefix)) rmSync(join(this.#directory, name), { force: true });
    }
  }

  /** The generation that is to be read; null when there is none, or its file has gone. About 10 µs. */
  live(projection: Projection): number | null {
    const row: unknown = this.#selectLive.get(projection.name, projection.schema);
    if (typeof row !== 'object' || row === null || !('generation' in row)) return null;
    const generation = Number(row.generation);
    return existsSync(this.pathOf(projection, generation)) ? generation : null;
  }

  /** Makes a generation the one to be read. Its file must be there; false when it is not. */
  switchTo(projection: Projection, generation: number): boolean {
    return this.exclusively(() => {
      if (!existsSync(this.pathOf(projection, generation))) return false;
      this.#register
        .prepare('INSERT OR REPLACE INTO live (name, schema, generation) VALUES (?, ?, ?)')
        .run(projection.name, projection.schema, generation);
      return true;
    });
  }

  /** Says that a generation must not be read any more. Inside {@link exclusively}. */
  unsetLive(projection: Projection, generation: number): void {
    this.#register
      .prepare('DELETE FROM live WHERE name = ? AND schema = ? AND generation = ?')
      .run(projection.name, projection.schema, generation);
  }

  /** Schemas of which a generation has a file, ascending. */
  schemas({ name }: Projection): readonly number[] {
    const found = readdirSync(this.#directory).flatMap((file) => {
      const [, view, schema] = /^(.+)-s(\d+)-g\d+\.db$/.exec(file) ?? [];
      return view === name ? [Number(schema)] : [];
    });
    return [...new Set(found)].sort((a, b) => a - b);
  }

  /** Generations that have a file, ascending. */
  generations(projection: Projection): readonly number[] {
    const prefix = prefixOf(projection);
    return readdirSync(this.#directory)
      .filter((name) => name.startsWith(prefix) && name.endsWith('.db'))
      .map((name) => Number(name.slice(prefix.length, -'.db'.length)))
      .filter((generation) => Number.isSafeInteger(generation))
      .sort((a, b) => a - b);
  }

  /** Runs while no other process makes or deletes files or changes what is live. */
  exclusively<T>(action: () => T): T {
    return inTransaction(this.#register, action);
  }

  /** Whether the register can be read. @throws the driver's errors */
  ping(): void {
    this.#selectLive.get('', 0);
  }

  close(): void {
    if (this.#register.isOpen) this.#register.close();
  }
}

/** How the name goes on of a file with a share of a generation. */
const SHARE = '.share';

function prefixOf(projection: Projection): string {
  return `${projection.name}-s${String(projection.schema)}-g`;
}

const register = {
  what: 'register of views',
  version: 1,
  migrate: (database: Database): void => {
    database.exec(`CREATE TABLE live (
      name TEXT NOT NULL, schema INTEGER NOT NULL, generation INTEGER NOT NULL,
      PRIMARY KEY (name, schema)) WITHOUT ROWID`);
  },
  busyTimeout: 1_000,
  cacheMiB: 1,
} as const;

/** A damaged register is thrown away: what was live has to be switched to again. */
function openRegister(file: string, telemetry: Telemetry): Database {
  const open = (): Database => openDatabase({ ...register, file });
  try {
    const database = open();
    const row: unknown = database.prepare('PRAGMA quick_check(1)').get();
    if (JSON.stringify(row).includes('"ok"')) return database;
    database.close();
    telemetry.log.error(`the register of views ${file} is damaged; beginning anew`, {
      found: JSON.stringify(row),
    });
  } catch (error) {
    if (faultOf(error) !== 'corrupt') throw error;
    telemetry.log.error(`${describeFault('register of views', file, error)}; beginning anew`);
  }
  deleteDatabase(file);
  return open();
}
