import { writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** Maximum bytes of waiting lines. Lines beyond it are lost. */
const MAX_WAITING_BYTES = 1 << 20;

/** Milliseconds before a full pipe is tried again. */
const RETRY_DELAY = 20;

/** After this many failed tries, the reader counts as stopped, and this no longer waits for it. */
const MAX_TRIES = 50;

/**
 * Writes each line to an open file at once. A full disk, a blocked pipe or a closed terminal must neither end nor block
 * the service. The oldest lines wait, and are written before the next line that succeeds.
 */
export class LineFile implements DestinationStream {
  readonly #fd: number;
  readonly #onLost: (lost: number) => void;
  /** The first one may be the rest of a partly written line. */
  readonly #waiting: Buffer[] = [];
  #bytes = 0;
  #lost = 0;
  #hasStopped = false;

  /** @param onLost called with the number of lost lines, once lines can be written again */
  constructor(fd: number, onLost: (lost: number) => void) {
    this.#fd = fd;
    this.#onLost = onLost;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#bytes + bytes.length > MAX_WAITING_BYTES && !this.#writeWaiting()) {
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

  /** @returns whether all lines are written */
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
      // The log itself is broken, so nothing can be reported.
      return false;
    }
  }

  /**
   * Writes at least one byte. Waits for a slow reader, so that an ending process loses no lines. Waits only once for a
   * reader that has stopped.
   */
  #writeAtOnce(bytes: Buffer): number {
    for (let tries = 1; ; tries += 1) {
      try {
        const written = writeSync(this.#fd, bytes);
        this.#hasStopped = false;
        return written;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        this.#hasStopped ||= tries >= MAX_TRIES;
        if (this.#hasStopped) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_DELAY);
      }
    }
  }
}
