import type { Clock } from '../../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import type { SkippedEvents } from '../../domain/operators/skipped-events.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PoisonedKey } from '../projector/fold-batch.ts';
import type { Parking } from '../projector/parking.ts';
import type { FillingStatus } from '../projector/projection-status.ts';
import { FillingProgress, type FillingCounts } from './filling-progress.ts';
import { PoisonedFillError, type GenerationFeeder } from './generation-feeder.ts';
import type { Making } from './making.ts';

/** Which generation is filled, and how. Plain values, as they go to other threads. */
export interface FillOrder {
  /** Of the projection. */
  readonly name: string;
  readonly generation: number;
  readonly fence: number;
  readonly batchSize: number;
  /** Where there is something to read; where there is not, one key that is held back is better than no view at all. */
  readonly endsAtPoison: boolean;
  /** Of the log. Those who fill shares end there, each of them, and one goes on with the whole. */
  readonly head: Position;
  /** Events that an operator had left out. */
  readonly skipped: SkippedEvents;
}

/** What those who fill ask of, and tell, who has ordered it. */
export interface FillListener {
  /** How far they are, now and then. @param detail what is wrong; null while nothing is */
  onProgress(counts: Omit<FillingCounts, 'version'>, detail: string | null): void;
  readonly parking: Pick<Parking, 'park'>;
}

/** Fills generations elsewhere than where the log is followed: in several threads, say, that share the streams. */
export interface FillElsewhere {
  /** Whether a log that ends there is so long that it is worth it. */
  isWorthIt(head: Position): boolean;

  /**
   * Resolves with true when the generation has everything that was in the log, is indexed and closed; with false when
   * the signal was aborted, and nothing is written any more. Called again, it goes on from where it was.
   * @throws PoisonedElsewhereError; Error where those who fill are gone
   */
  fill(order: FillOrder, listener: FillListener, signal: AbortSignal): Promise<boolean>;
}

/** Filling ended at an event that can't be folded. */
export class PoisonedElsewhereError extends Error {
  readonly poisoned: PoisonedKey;

  constructor(poisoned: PoisonedKey) {
    super(poisoned.error);
    this.name = 'PoisonedElsewhereError';
    this.poisoned = poisoned;
  }
}

export interface FillingBesideOptions {
  /** Opened here once the generation is filled. */
  readonly feeder: GenerationFeeder;
  readonly elsewhere: FillElsewhere;
  readonly order: (head: Position) => FillOrder;
  readonly parking: Pick<Parking, 'park'>;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Has a generation made elsewhere: what follows the log goes on here meanwhile, also while indexes are made. */
export class FillingBeside implements Making {
  readonly feeder: GenerationFeeder;
  readonly #options: FillingBesideOptions;
  readonly #progress: FillingProgress;
  #counts: Omit<FillingCounts, 'version'> = { handled: 0, leftOut: 0, looked: BEGINNING };

  constructor(options: FillingBesideOptions) {
    this.feeder = options.feeder;
    this.#options = options;
    this.#progress = new FillingProgress(options.clock);
  }

  run(signal: AbortSignal): Promise<boolean> {
    const { telemetry } = this.#options;
    const { projection } = this.feeder;
    this.#progress.begin(this.#counts.handled);
    return this.#progress.tries(
      () => this.#fill(signal),
      (error) => error instanceof PoisonedFillError,
      { projection: projection.name, telemetry, signal },
    );
  }

  ready(): void {
    this.#progress.is('ready');
  }

  failed(detail: string): void {
    this.#progress.is('failed', detail);
  }

  status(): FillingStatus {
    return this.#progress.status({ version: this.feeder.generation, ...this.#counts });
  }

  async #fill(signal: AbortSignal): Promise<boolean> {
    const { elsewhere, order, parking, store } = this.#options;
    const head = await store.head();
    let goesTo: Position | null = head;
    const before = this.#counts.handled;
    const onProgress: FillListener['onProgress'] = (counts, detail) => {
      this.#counts = { ...counts, handled: before + counts.handled };
      this.#progress.detail = detail;
      // Where it goes on from is told with the first.
      if (goesTo !== null) this.#progress.goesTo(goesTo, counts);
      goesTo = null;
    };
    try {
      const listener = { onProgress, parking };
      if (!(await elsewhere.fill(order(head), listener, signal))) return false;
    } catch (error) {
      if (!(error instanceof PoisonedElsewhereError)) throw error;
      throw new PoisonedFillError(this.feeder.projection.name, error.poisoned);
    }
    // It then knows where it is.
    await this.feeder.open(false);
    await this.feeder.close();
    this.feeder.handled = this.#counts.handled;
    this.feeder.leftOut = this.#counts.leftOut;
    return true;
  }
}
