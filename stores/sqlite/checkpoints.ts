import { blockFor, prepareForArrays, type Database, type Statement } from './database.ts';

/** When a WAL is moved to its file. */
export interface CheckpointLimits {
  /** Pages in the WAL that are let gather while more is waiting to be written; to move more at once would hold that up. */
  readonly busyPages: number;
  /** Pages that are worth moving when there is nothing else to do. */
  readonly idlePages: number;
  /** Calls between two looks at how much has gathered. A look costs as much as writing a few rows. */
  readonly busyCalls: number;
  readonly idleCalls: number;
  /** Milliseconds for which others are waited for where a WAL is long that is to begin anew. */
  readonly patience: number;
}

/** Pages that are moved while all who write wait: what has come since the others were moved. More, where the WAL is long. */
const FEW_PAGES = 500;
/** A WAL is long that has so many times what is let gather. */
const LONG = 2;

/**
 * Moves what was committed from the WAL of a file that several processes write to the file itself, between transactions,
 * in place of SQLite's own checkpoints.
 *
 * A WAL is written from its beginning again once all of it has been moved at the moment in which somebody writes. Where
 * many write, somebody always has written meanwhile, and it would grow without end: so what little has come since is
 * then moved under the lock of those who write, and the WAL begins anew.
 */
export class Checkpoints {
  readonly #limits: CheckpointLimits;
  readonly #look: Statement;
  readonly #move: Statement;
  readonly #restart: Statement;
  /** While a reader holds pages back, another try must wait until as many again have come. */
  #held = 0;
  #unlooked = 0;
  /** The WAL was moved, and has not begun anew: from so many pages of it on that is tried again. */
  #restartFrom = Number.POSITIVE_INFINITY;

  /** @param database its own checkpoints are off */
  constructor(database: Database, limits: CheckpointLimits) {
    this.#limits = limits;
    this.#look = prepareForArrays(database, 'PRAGMA wal_checkpoint(NOOP)');
    this.#move = prepareForArrays(database, 'PRAGMA wal_checkpoint(PASSIVE)');
    this.#restart = prepareForArrays(database, 'PRAGMA wal_checkpoint(RESTART)');
  }

  /**
   * After each transaction.
   *
   * @param idle nothing is waiting to be written
   * @throws the driver's error when the disk refuses; nothing is lost by that
   */
  make(idle: boolean): void {
    const { busyPages, idlePages, busyCalls, idleCalls, patience } = this.#limits;
    this.#unlooked += 1;
    if (this.#unlooked < (idle ? idleCalls : busyCalls)) return;
    this.#unlooked = 0;
    let wal = walStateOf(this.#look);
    if (wal.unmoved >= (idle ? idlePages : busyPages) + this.#held) {
      wal = walStateOf(this.#move);
      this.#held = Math.max(0, wal.unmoved);
      this.#restartFrom = 0;
    }
    const isLong = wal.pages >= LONG * busyPages;
    if (wal.pages < this.#restartFrom || (!isLong && wal.unmoved > FEW_PAGES)) return;
    this.#restartFrom = this.#beginAnew(isLong ? patience : 0)
      ? Number.POSITIVE_INFINITY
      : wal.pages + FEW_PAGES;
  }

  /**
   * @param patience milliseconds for which others may write or read before it is given up
   * @returns whether the next commit, whoever makes it, is written at the WAL's beginning
   */
  #beginAnew(patience: number): boolean {
    const until = performance.now() + patience;
    for (;;) {
      if (!walStateOf(this.#restart).busy) return true;
      if (performance.now() >= until) return false;
      blockFor(0.1 + Math.random() * 0.2);
    }
  }
}

/** What a checkpoint says: whether somebody was in its way, and how many pages of the WAL there are, and are left. */
export function walStateOf(checkpoint: Statement): {
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
