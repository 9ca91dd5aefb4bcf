import { open } from 'node:fs/promises';
import { walState } from '../wal-checkpointer.ts';
import { prepareForArrays, type Database, type Statement } from '../database.ts';

/** Pages of WAL between two syncs: two megabytes, a few milliseconds of disk time. */
const SYNC_PAGES = 256;

/**
 * WAL pages after which a commit moves them to the file: four times the file's pages, as most are changed repeatedly.
 * At least four megabytes, at most 64.
 */
const WAL_TO_FILE_RATIO = 4;
export const MIN_WAL_PAGES = 512;
const MAX_WAL_PAGES = 8_192;

/**
 * The WAL of a live view: its limit, and its syncs. It is synced in parts while it grows, because a view's commits never
 * wait for the disk. Synced all at once at the checkpoint, it would block the disk for every other writer, such as the log.
 */
export class ViewWal {
  readonly #database: Database;
  readonly #wal: string;
  readonly #sync: (file: string) => Promise<void>;
  readonly #state: Statement;
  readonly #pages: Statement;
  /** Pages after which a commit moves them; null: as opened. */
  #limit: number | null = null;
  /** Pages of the WAL that are synced, or being synced. */
  #done = 0;
  #underWay: Promise<void> | null = null;
  #fault: Error | null = null;

  /**
   * @param wal path of the WAL, which exists from the first {@link sync} on
   * @param sync resolves once a file is on the disk
   */
  constructor(database: Database, wal: string, sync: (file: string) => Promise<void> = syncFile) {
    this.#database = database;
    this.#wal = wal;
    this.#sync = sync;
    this.#state = prepareForArrays(database, 'PRAGMA wal_checkpoint(NOOP)');
    this.#pages = prepareForArrays(database, 'PRAGMA page_count');
  }

  /** Starts the next sync if one is due; call between commits. @throws the file system's error of the previous sync, once */
  sync(): void {
    const fault = this.#fault;
    this.#fault = null;
    if (fault !== null) throw fault;
    if (this.#underWay !== null) return;
    const { pages } = walState(this.#state);
    // The WAL was restarted.
    if (pages < this.#done) this.#done = 0;
    if (pages - this.#done < SYNC_PAGES) return;
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
    const pages = WAL_TO_FILE_RATIO * Number(this.#pages.get()?.[0]);
    const limit = Math.min(Math.max(MIN_WAL_PAGES, pages), MAX_WAL_PAGES);
    if (limit === this.#limit) return;
    this.#limit = limit;
    this.#database.exec(`PRAGMA wal_autocheckpoint = ${limit}`);
  }

  /** Resolves when no sync is running. */
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
