import { writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** Bytes of lines that wait where they can't be written; what comes on top is lost. */
const MOST_WAITING = 1 << 20;

/** Milliseconds until a pipe whose reader is slow is tried again. */
const SLOW = 20;

/** How often it is tried without a byte being taken: its reader has stopped then, and is not waited for any more. */
const MOST_TRIES = 50;

/**
 * Writes lines to a file that is open, each at once. A file that takes none (its disk is full, nobody reads the pipe,
 * the terminal is gone) is no reason for the service to end, or to stand still: lines wait, the oldest of them, and go
 * before the first that can be written again.
 */
export class LineFile implements DestinationStream {
  readonly #fd: number;
  readonly #onLost: (lost: number) => void;
  /** The first of them is the rest of one, where it was written in part. */
  readonly #waiting: Buffer[] = [];
  #bytes = 0;
  #lost = 0;
  #hasStopped = false;

  /** @param onLost told how many lines were lost, when lines can be written again */
  constructor(fd: number, onLost: (lost: number) => void) {
    this.#fd = fd;
    this.#onLost = onLost;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#bytes + bytes.length > MOST_WAITING && !this.#writeWaiting()) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    if (!this.#writeWaiting() || this.#lost === 0) return;
    const lost = this.#lost;
    this.#lost = 0;
    this.#onLost(lost);
  }

  /** @returns whether nothing waits any more */
  #writeWaiting(): boolean {
    try {
      for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
        const written = this.#writeAtOnce(first);
        this.#bytes -= written;
        if (written < first.length) this.#waiting[0] = first.subarray(written);
        else this.#waiting.shift();
      }
      return true;
    } catch {
      // There is no place left to say it.
      return false;
    }
  }

  /**
   * Writes what is taken at once, a byte at least. Waits for a slow reader, so that a process that ends loses no lines,
   * and no more than once for one that reads no longer.
   */
  #writeAtOnce(bytes: Buffer): number {
    for (let tries = 1; ; tries += 1) {
      try {
        const written = writeSync(this.#fd, bytes);
        this.#hasStopped = false;
        return written;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        this.#hasStopped ||= tries >= MOST_TRIES;
        if (this.#hasStopped) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLOW);
      }
    }
  }
}
