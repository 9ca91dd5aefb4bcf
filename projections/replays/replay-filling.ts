import type { Clock } from '../../domain/clock.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { SkippedEvents } from '../../domain/operators/skipped-events.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { endingAt } from '../generations/ending-at.ts';
import { Filling } from '../generations/filling.ts';
import { GenerationFeeder } from '../generations/generation-feeder.ts';
import { Parking } from '../projector/parking.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import { shareOfLog } from '../generations/share-of-log.ts';

export interface ReplayFillingOptions {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly fence: number;
  /** Under the name of the replay. */
  readonly projection: Projection;
  readonly generation: number;
  /** The last position that is folded. */
  readonly until: Position;
  readonly rate: number | null;
  /** Events that an operator had left out of the view. */
  readonly skipped: SkippedEvents;
}

/** Events to a batch, as a rebuild has them; fewer at a slow rate, so that it rests often and not long. */
const BATCH = 4_000;

/** Makes one view as of a position: a generation like any other, but that its log ends there. */
export class ReplayFilling {
  readonly #options: ReplayFillingOptions;
  readonly #feeder: GenerationFeeder;
  readonly #filling: Filling;

  constructor(options: ReplayFillingOptions) {
    const { store, readModel, clock, telemetry, fence, projection, generation, until } = options;
    this.#options = options;
    this.#feeder = new GenerationFeeder({
      ...{ readModel, projection, generation, fence, telemetry },
      skipped: () => options.skipped,
      endsAtPoison: true,
      // Nothing is held back while filling in bulk: it fails where an event can't be folded.
      parking: new Parking(readModel, fence),
      onPassed: () => undefined,
    });
    this.#filling = new Filling({
      ...{ feeder: this.#feeder, clock, telemetry },
      store: endingAt(store, until),
      batchSize: Math.min(BATCH, Math.ceil((options.rate ?? Infinity) / 4)),
      rate: options.rate ?? undefined,
    });
  }

  /** Events folded since it was made. */
  get handled(): number {
    return this.#feeder.handled;
  }

  get rate(): number {
    return this.#filling.status().events_per_second;
  }

  /** 0..1, of the log up to its end. */
  get progress(): number {
    return shareOfLog(this.#filling.looked, this.#options.until);
  }

  /**
   * Fills it, from where an earlier process left it.
   * @returns how many documents it has; null when the signal was aborted
   * @throws PoisonedFillError
   */
  async run(signal: AbortSignal): Promise<number | null> {
    if (!(await this.#filling.run(signal))) return null;
    await this.#feeder.open(false);
    try {
      return await this.#feeder.count();
    } finally {
      await this.#feeder.close();
    }
  }
}
