import type { Database, Statement } from '../../database.ts';
import { prepareForArrays } from './log-writer.ts';

/** Pages in the WAL that a busy writer lets gather; moving more at once would stall it for longer. */
const BUSY_PAGES = 8_000;
/** Pages that are worth moving when there is nothing else to do. */
const IDLE_PAGES = 2_000;

/** Commits between two looks at how much has gathered; one may bring some hundred pages. */
const BUSY_COMMITS = 16;
const IDLE_COMMITS = 4;

/**
 * Moves what was committed from the WAL to the file itself, between transactions and after they were
 * answered, so that no append waits for it that was already durable.
 */
export class Checkpoints {
  readonly #look: Statement;
  readonly #move: Statement;
  /** While a reader holds pages back, another try must wait until as many again have come. */
  #held = 0;
  /** Looking costs as much as writing a few events: a busy writer does it now and then. */
  #unlooked = 0;

  constructor(database: Database) {
    this.#look = prepareForArrays(database, 'PRAGMA wal_checkpoint(NOOP)');
    this.#move = prepareForArrays(database, 'PRAGMA wal_checkpoint(PASSIVE)');
  }

  /**
   * @param idle nothing is waiting to be written
   * @throws the driver's error when the disk refuses; nothing is lost by that
   */
  make(idle: boolean): void {
    this.#unlooked += 1;
    if (this.#unlooked < (idle ? IDLE_COMMITS : BUSY_COMMITS)) return;
    this.#unlooked = 0;
    const pages = idle ? IDLE_PAGES : BUSY_PAGES;
    if (pending(this.#look) < pages + this.#held) return;
    this.#held = Math.max(0, pending(this.#move));
  }
}

function pending(statement: Statement): number {
  const [, inWal, moved] = statement.get() ?? [];
  return Number(inWal) - Number(moved);
}
