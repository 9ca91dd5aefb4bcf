import { open } from 'node:fs/promises';
import { walStateOf } from '../checkpoints.ts';
import { prepareForArrays, type Database, type Statement } from '../database.ts';

/** Pages that come to the WAL between two times: two megabytes, which a disk has in a few milliseconds. */
const PART = 256;

/**
 * Pages of a WAL after which a commit moves them to the file: some times what the file has, as most of them are then
 * changed more than once. Four megabytes of a small view, whose every commit changes the same page or two; 64 at most.
 */
const TIMES_THE_FILE = 4;
export const FEWEST_PAGES = 512;
const MOST_PAGES = 8_192;

/**
 * The WAL of a view that is followed: how long it becomes, and when it goes to the disk.
 *
 * It is written to the disk in parts, while more is added to it. No commit of a view waits for the disk, so that it would
 * all be written at once when the WAL is moved to its file: for as long as that takes, all others who write to that disk
 * stand still, and with the log each command.
 */
export class ViewWal {
  readonly #database: Database;
  readonly #wal: string;
  readonly #sync: (file: string) => Promise<void>;
  readonly #state: Statement;
  readonly #pages: Statement;
  /** After so many pages of it a commit moves them; null: as it was opened. */
  #limit: number | null = null;
  /** Pages of the WAL that are on the disk, or on the way. */
  #done = 0;
  #underWay: Promise<void> | null = null;
  #fault: Error | null = null;

  /**
   * @param database of the view
   * @param wal its file, which is there from the first {@link look} on
   * @param sync resolves once a file is on the disk
   */
  constructor(database: Database, wal: string, sync: (file: string) => Promise<void> = syncFile) {
    this.#database = database;
    this.#wal = wal;
    this.#sync = sync;
    this.#state = prepareForArrays(database, 'PRAGMA wal_checkpoint(NOOP)');
    this.#pages = prepareForArrays(database, 'PRAGMA page_count');
  }

  /**
   * Between commits. Begins with the next part where there is one; waits for nothing.
   * @throws Error of the file system when the part before could not be written, once
   */
  look(): void {
    const fault = this.#fault;
    this.#fault = null;
    if (fault !== null) throw fault;
    if (this.#underWay !== null) return;
    const { pages } = walStateOf(this.#state);
    // It has begun anew.
    if (pages < this.#done) this.#done = 0;
    if (pages - this.#done < PART) return;
    this.#done = pages;
    this.#limitBySize();
    this.#underWay = this.#sync(this.#wal).then(
      () => {
        this.#underWay = null;
      },
      (error: unknown) => {
        this.#underWay = null;
        this.#fault = error instanceof Error ? error : new Error(String(error), { cause: error });
      },
    );
  }

  #limitBySize(): void {
    const pages = TIMES_THE_FILE * Number(this.#pages.get()?.[0]);
    const limit = Math.min(Math.max(FEWEST_PAGES, pages), MOST_PAGES);
    if (limit === this.#limit) return;
    this.#limit = limit;
    this.#database.exec(`PRAGMA wal_autocheckpoint = ${limit}`);
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await this.#underWay;
  }
}

async function syncFile(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
