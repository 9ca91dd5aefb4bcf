import { blockThread, prepareForArrays, type Database, type Statement } from './database.ts';

/** When a WAL is moved to its file. */
export interface CheckpointLimits {
  /** Pages that may gather while writes are waiting. */
  readonly busyPages: number;
  /** Pages worth moving when idle. */
  readonly idlePages: number;
  /** Calls between two checks of the WAL's length. A check costs as much as writing a few rows. */
  readonly busyCalls: number;
  readonly idleCalls: number;
  /** Milliseconds to wait for others before restarting a long WAL. */
  readonly patience: number;
}

/** Pages moved while all writers wait: those added since the last move. More, where the WAL is long. */
const MAX_PAGES_UNDER_LOCK = 500;
/** A WAL is long at this multiple of `busyPages`. */
const LONG_WAL_FACTOR = 2;

/**
 * Checkpoints the WAL of a file with several writers, between transactions, instead of SQLite's own checkpoints.
 *
 * SQLite restarts a WAL once all of it has been moved. With many writers some page is always new, and the WAL would grow
 * without end. So the last few pages are moved under the write lock, and the WAL restarts.
 */
export class WalCheckpointer {
  readonly #limits: CheckpointLimits;
  readonly #inspect: Statement;
  readonly #move: Statement;
  readonly #restart: Statement;
  /** Pages held back by readers at the last move; the next attempt waits for as many more. */
  #held = 0;
  #unchecked = 0;
  /** The WAL was moved but not restarted; restarting is tried from this length on. */
  #restartFrom = Number.POSITIVE_INFINITY;

  /** @param database a connection without automatic checkpoints */
  constructor(database: Database, limits: CheckpointLimits) {
    this.#limits = limits;
    this.#inspect = prepareForArrays(database, 'PRAGMA wal_checkpoint(NOOP)');
    this.#move = prepareForArrays(database, 'PRAGMA wal_checkpoint(PASSIVE)');
    this.#restart = prepareForArrays(database, 'PRAGMA wal_checkpoint(RESTART)');
  }

  /**
   * Call after each transaction.
   * @param idle whether no write is waiting
   * @throws the driver's error when the disk refuses; nothing is lost
   */
  run(idle: boolean): void {
    const { busyPages, idlePages, busyCalls, idleCalls, patience } = this.#limits;
    this.#unchecked += 1;
    if (this.#unchecked < (idle ? idleCalls : busyCalls)) return;
    this.#unchecked = 0;
    let wal = walState(this.#inspect);
    if (wal.unmoved >= (idle ? idlePages : busyPages) + this.#held) {
      wal = walState(this.#move);
      this.#held = Math.max(0, wal.unmoved);
      this.#restartFrom = 0;
    }
    const isLong = wal.pages >= LONG_WAL_FACTOR * busyPages;
    if (wal.pages < this.#restartFrom || (!isLong && wal.unmoved > MAX_PAGES_UNDER_LOCK)) return;
    this.#restartFrom = this.#beginAnew(isLong ? patience : 0)
      ? Number.POSITIVE_INFINITY
      : wal.pages + MAX_PAGES_UNDER_LOCK;
  }

  /**
   * @param patience milliseconds to wait for other readers and writers
   * @returns whether the next commit starts the WAL anew
   */
  #beginAnew(patience: number): boolean {
    const until = performance.now() + patience;
    for (;;) {
      if (!walState(this.#restart).busy) return true;
      if (performance.now() >= until) return false;
      blockThread(0.1 + Math.random() * 0.2);
    }
  }
}

/** The result of a checkpoint: whether another connection was in its way, and the WAL's pages in all and not yet moved. */
export function walState(checkpoint: Statement): {
  readonly busy: boolean;
  readonly pages: number;
  readonly unmoved: number;
} {
  const [busy, inWal, moved] = checkpoint.get() ?? [];
  return {
    busy: busy !== 0,
    pages: Number(inWal),
    unmoved: Number(inWal) - Number(moved),
  };
}
