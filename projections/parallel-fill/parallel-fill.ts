import type { Position } from '../../domain/event-store.ts';
import type { SkippedEvents } from '../../domain/operators/skipped-events.ts';
import type { FillingCounts } from '../generations/filling-progress.ts';
import type { PoisonedKey } from '../projector/fold-batch.ts';
import type { Parking } from '../projector/parking.ts';

/**
 * Filling a generation in parallel. Each of several threads folds a share of the streams into its own file, and the
 * first thread merges the files of the others. Other views are filled by one thread (generations/filling.ts).
 */
export interface FillElsewhere {
  /** Whether a log that ends there is long enough. */
  isWorthIt(head: Position): boolean;

  /**
   * Resolves with true when the generation has everything that was in the log, and is indexed and closed. Resolves with
   * false when the signal was aborted and nothing is being written. A further call continues from the last checkpoint.
   * @throws PoisonedShareError; Error if a thread died
   */
  fill(order: FillOrder, listener: FillListener, signal: AbortSignal): Promise<boolean>;
}

/** Which generation is filled, and how. Plain values, as they are sent to threads. */
export interface FillOrder {
  readonly name: string;
  readonly generation: number;
  readonly fence: number;
  readonly batchSize: number;
  /** Whether filling stops at an event that cannot be folded. If not, its key is parked. */
  readonly endsAtPoison: boolean;
  /** A position in the log at which all shares end. Then one thread fills the events since. */
  readonly head: Position;
  readonly skipped: SkippedEvents;
}

/** The caller of a parallel fill. */
export interface FillListener {
  /** Receives the progress from time to time. @param detail the last error; null if there is none */
  onProgress(counts: Omit<FillingCounts, 'version'>, detail: string | null): void;
  readonly parking: Pick<Parking, 'park'>;
}

export class PoisonedShareError extends Error {
  readonly poisoned: PoisonedKey;

  constructor(poisoned: PoisonedKey) {
    super(poisoned.error);
    this.name = 'PoisonedShareError';
    this.poisoned = poisoned;
  }
}
