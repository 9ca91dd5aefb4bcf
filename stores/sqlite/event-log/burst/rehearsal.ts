import type { EncodedEvent, StreamAppend } from '../../../../domain/event-store.ts';
import { describeFault, type Database } from '../../database.ts';
import { LOG, openLogInMemory } from '../schema.ts';
import { LogWriter } from '../writing/log-writer.ts';
import type { WriteSequence } from '../writing/protocol.ts';

/** A sequence of appends that is written to a log in memory only. */
export interface RehearsedSequence {
  readonly appends: readonly StreamAppend[];
  readonly encoded: readonly (readonly EncodedEvent[])[];
}

/** Runs appends without a trace before a burst of real ones, so that V8 has compiled their code by then. */
export class Rehearsal {
  readonly #write: (sequences: readonly RehearsedSequence[]) => Promise<void>;
  /** Collected during this turn. */
  readonly #sequences: RehearsedSequence[] = [];
  #running: Promise<void> | undefined;

  /** @param write has the writer thread call {@link rehearseInMemory} */
  constructor(write: (sequences: readonly RehearsedSequence[]) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves even after a failure, which is logged. */
  run(sequence: RehearsedSequence): Promise<void> {
    this.#sequences.push(sequence);
    this.#running ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
      this.#running = undefined;
      return this.#write(this.#sequences.splice(0));
    });
    return this.#running;
  }
}

/** The writer thread's part: writes to a log in memory, never to the real one. @returns what went wrong, if anything */
export function rehearseInMemory(
  sequences: readonly WriteSequence[],
  lockTimeout: number,
): string | undefined {
  let database: Database | undefined;
  try {
    database = openLogInMemory();
    new LogWriter(database, lockTimeout).write(() => sequences);
    return undefined;
  } catch (error) {
    return describeFault(LOG, 'in memory', error);
  } finally {
    database?.close();
  }
}
