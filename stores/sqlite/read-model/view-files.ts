import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Projection } from '../../../projections/read-model.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { inTransaction, openRebuildable, openWithoutChanges, type Database } from '../database.ts';
import { deleteDatabase } from '../database-file.ts';

/** The register of views in their folder. */
export function registerFile(directory: string): string {
  return join(directory, 'views.db');
}

/**
 * The files of the views: one per generation, `<name>-s<schema>-g<generation>.db`, and the register `views.db`, which
 * names the live generation of each (name, schema). Files are created and deleted only while the register is locked.
 * During a parallel bulk fill, further shares lie in `<name>-s<schema>-g<generation>.share<index>.db`.
 */
export class ViewFiles {
  /** Whether nothing may be created, changed or deleted. */
  readonly readOnly: boolean;
  readonly #directory: string;
  readonly #register: Database;
  readonly #selectLive;

  constructor(directory: string, telemetry: Telemetry, readOnly = false) {
    this.#directory = directory;
    this.readOnly = readOnly;
    const file = registerFile(directory);
    this.#register = readOnly
      ? openWithoutChanges({ ...register, file })
      : openRebuildable({ ...register, file }, telemetry);
    this.#selectLive = this.#register.prepare(
      'SELECT generation FROM live WHERE name = ? AND schema = ?',
    );
  }

  /** The path of a generation's file, existing or not. @param share of a running parallel fill; default: the first */
  pathOf(projection: Projection, generation: number, share = 0): string {
    const suffix = share === 0 ? '' : `${SHARE_SUFFIX}${String(share)}`;
    return join(this.#directory, `${prefixOf(projection)}${String(generation)}${suffix}.db`);
  }

  /** Deletes a generation with its shares. Call inside {@link exclusively}. */
  delete(projection: Projection, generation: number): void {
    // Shares first: leftovers of a generation are found by its own file.
    this.deleteShares(projection, generation);
    deleteDatabase(this.pathOf(projection, generation));
  }

  /** Deletes the files of further shares. Call inside {@link exclusively}. */
  deleteShares(projection: Projection, generation: number): void {
    const prefix = `${prefixOf(projection)}${String(generation)}${SHARE_SUFFIX}`;
    for (const name of readdirSync(this.#directory)) {
      if (name.startsWith(prefix)) rmSync(join(this.#directory, name), { force: true });
    }
  }

  /** The live generation; null when there is none, or its file is gone. About 10 µs. */
  live(projection: Projection): number | null {
    const row = this.#selectLive.get(projection.name, projection.schema);
    if (row === undefined) return null;
    const generation = Number(row['generation']);
    return existsSync(this.pathOf(projection, generation)) ? generation : null;
  }

  /** Makes a generation live. @returns false when its file is missing */
  switchTo(projection: Projection, generation: number): boolean {
    return this.exclusively(() => {
      if (!existsSync(this.pathOf(projection, generation))) return false;
      this.#register
        .prepare('INSERT OR REPLACE INTO live (name, schema, generation) VALUES (?, ?, ?)')
        .run(projection.name, projection.schema, generation);
      return true;
    });
  }

  /** Withdraws a generation from reading. Call inside {@link exclusively}. */
  unsetLive(projection: Projection, generation: number): void {
    this.#register
      .prepare('DELETE FROM live WHERE name = ? AND schema = ? AND generation = ?')
      .run(projection.name, projection.schema, generation);
  }

  /** Schemas with a generation, ascending. */
  schemas({ name }: Projection): readonly number[] {
    const found = readdirSync(this.#directory).flatMap((file) => {
      const [, view, schema] = /^(.+)-s(\d+)-g\d+\.db$/.exec(file) ?? [];
      return view === name ? [Number(schema)] : [];
    });
    return [...new Set(found)].sort((a, b) => a - b);
  }

  /** Existing generations, ascending. */
  generations(projection: Projection): readonly number[] {
    const prefix = prefixOf(projection);
    return readdirSync(this.#directory)
      .filter((name) => name.startsWith(prefix) && name.endsWith('.db'))
      .map((name) => Number(name.slice(prefix.length, -'.db'.length)))
      .filter((generation) => Number.isSafeInteger(generation))
      .sort((a, b) => a - b);
  }

  /** Runs an action while no other process creates or deletes files or changes what is live. */
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

/** The start of a share's file suffix. */
const SHARE_SUFFIX = '.share';

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
