import { closeSync, fdatasyncSync, fstatSync, openSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** As long as the WAL becomes under load, a little more; see the limits of `writer-thread.ts`. Bytes. */
export const WAL_ROOM = 36 * 1024 * 1024;

/** What is added at a time, while nobody writes: a few milliseconds. */
const STEP = 1024 * 1024;

/** A disk with less left than so many times the room is left alone. */
const PLENTY = 16;

/**
 * Makes the file of the log's WAL as long as it becomes under load, before there is load: each commit that makes a file
 * longer also waits for the file system to note that, which is several times as long as the writing itself where the
 * processors are busy. PostgreSQL fills its WAL files with zeros for the same reason (`wal_init_zero`).
 *
 * The zeros lie beyond all that is written: SQLite takes a frame by its salts and its checksum, and a header by its magic
 * number, https://sqlite.org/fileformat2.html#walformat, so that it sees none of them, and writes over them.
 */
export class WalRoom {
  readonly #file: string;
  readonly #room: number;

  /**
   * @param file the log's
   * @param room bytes
   */
  constructor(file: string, room: number = WAL_ROOM) {
    this.#file = file;
    this.#room = room;
  }

  /**
   * Adds a part of it, and waits for the disk.
   *
   * @param alone calls back while nobody of any process writes the log: else a frame could lie where zeros come
   * @returns whether there is more to add
   * @throws Error of the file system; what lies there is as good as before
   */
  grow(alone: (work: () => void) => void): boolean {
    if (!this.#isPlentyLeft()) return false;
    let descriptor: number | undefined;
    try {
      let missing = 0;
      alone(() => {
        // Only now: a WAL that was there before may have gone with the last that had the log open.
        descriptor = openSync(`${this.#file}-wal`, 'r+');
        const { size } = fstatSync(descriptor);
        missing = this.#room - size;
        const zeros = Buffer.alloc(Math.max(0, Math.min(STEP, missing)));
        writeSync(descriptor, zeros, 0, zeros.length, size);
      });
      if (descriptor !== undefined && missing > 0) fdatasyncSync(descriptor);
      return missing > STEP;
    } finally {
      // SQLite has its locks on the log's file and the WAL's index: none goes with this, as they would by POSIX.
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }

  #isPlentyLeft(): boolean {
    const { bavail, bsize } = statfsSync(dirname(this.#file));
    return bavail * bsize >= PLENTY * this.#room;
  }
}
