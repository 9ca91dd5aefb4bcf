import { EventStoreError } from '../../../domain/event-store.ts';
import { fileNumber } from '../database-file.ts';

/** Milliseconds between two looks. */
const BETWEEN = 250;

/**
 * Whether the file that a process has open is still the one that others find at its path. Where it was moved away,
 * deleted or replaced, whoever has it open goes on with it, and all that is written there is gone when that ends.
 */
export class SameFile {
  readonly #path: string;
  readonly #number: number | undefined;
  #seenAt = performance.now();

  /** To be made when the file was opened. */
  constructor(path: string) {
    this.#path = path;
    this.#number = fileNumber(path);
  }

  /** Looks, unless that was done just now. @throws EventStoreError `UNAVAILABLE` */
  check(): void {
    if (performance.now() - this.#seenAt >= BETWEEN) this.look();
  }

  /** @throws EventStoreError `UNAVAILABLE` where another file stands there, or none */
  look(): void {
    const number = fileNumber(this.#path);
    if (number !== this.#number) {
      const what = number === undefined ? 'is gone' : 'was replaced by another';
      throw new EventStoreError(
        'UNAVAILABLE',
        `the file of the event log ${what}: put the right one in its place, and start each process again`,
      );
    }
    this.#seenAt = performance.now();
  }
}
