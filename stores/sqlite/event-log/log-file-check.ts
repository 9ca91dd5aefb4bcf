import { EventStoreError } from '../../../domain/event-store.ts';
import { fileNumber } from '../database-file.ts';

/** Milliseconds between two checks. */
const CHECK_INTERVAL_MS = 250;

/**
 * Checks that the open file is still the one at its path. If it was moved, deleted or replaced, writes would go to a file
 * that nobody else sees.
 */
export class LogFileCheck {
  readonly #path: string;
  readonly #number: number | undefined;
  #seenAt = performance.now();

  /** Create it right after opening the file. */
  constructor(path: string) {
    this.#path = path;
    this.#number = fileNumber(path);
  }

  /** Checks, unless that was done recently. @throws EventStoreError `UNAVAILABLE` */
  check(): void {
    if (performance.now() - this.#seenAt >= CHECK_INTERVAL_MS) this.checkNow();
  }

  /** @throws EventStoreError `UNAVAILABLE` where the path leads to another file, or to none */
  checkNow(): void {
    const number = fileNumber(this.#path);
    if (number !== this.#number) {
      const what = number === undefined ? 'is gone' : 'was replaced';
      throw new EventStoreError(
        'UNAVAILABLE',
        `the file of the event log ${what}: restore the right one, and restart every process`,
      );
    }
    this.#seenAt = performance.now();
  }
}
