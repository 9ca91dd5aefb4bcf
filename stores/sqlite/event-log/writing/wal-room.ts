import { closeSync, fdatasyncSync, fstatSync, openSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** The WAL's length under load, rounded up; see the limits in `writer-thread.ts`. Bytes. */
export const WAL_ROOM = 36 * 1024 * 1024;

/** Bytes added per step, which take a few milliseconds. */
const STEP = 1024 * 1024;

/** Multiple of the room that must be free on the disk. */
const PLENTY = 16;

/**
 * Extends the log's WAL before there is load. A commit that extends a file also waits for the file system's metadata,
 * which takes several times as long as the write. PostgreSQL fills its WAL files with zeros for the same reason
 * (`wal_init_zero`).
 *
 * SQLite ignores and overwrites the zeros: it recognises frames by salts and checksum, and headers by a magic number
 * (https://sqlite.org/fileformat2.html#walformat).
 */
export class WalRoom {
  readonly #file: string;
  readonly #room: number;

  /** @param file path of the log @param room bytes */
  constructor(file: string, room: number = WAL_ROOM) {
    this.#file = file;
    this.#room = room;
  }

  /**
   * Adds one step, and waits for the disk.
   *
   * @param alone runs an action while no process writes the log, so that no frame is overwritten
   * @returns whether there is more to add
   * @throws Error of the file system; the WAL stays intact
   */
  grow(alone: (work: () => void) => void): boolean {
    if (!this.#isPlentyLeft()) return false;
    let descriptor: number | undefined;
    try {
      let missing = 0;
      alone(() => {
        // Opened here, as an earlier WAL may have been deleted with the last connection.
        descriptor = openSync(`${this.#file}-wal`, 'r+');
        const { size } = fstatSync(descriptor);
        missing = this.#room - size;
        const zeros = Buffer.alloc(Math.max(0, Math.min(STEP, missing)));
        writeSync(descriptor, zeros, 0, zeros.length, size);
      });
      if (descriptor !== undefined && missing > 0) fdatasyncSync(descriptor);
      return missing > STEP;
    } finally {
      // Closing it is safe under POSIX: SQLite's locks are on other files.
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }

  #isPlentyLeft(): boolean {
    const { bavail, bsize } = statfsSync(dirname(this.#file));
    return bavail * bsize >= PLENTY * this.#room;
  }
}
