import type { Position } from '../../domain/event-store.ts';
import type { SkippedEvents } from '../../domain/operators/skipped-events.ts';
import { logUpTo } from '../generations/bounded-log.ts';
import { Filling } from '../generations/filling.ts';
import { GenerationWriter } from '../generations/generation-writer.ts';
import { Parking } from '../projector/parking.ts';
import type { ProjectorParts, ProjectorTuning } from '../projector/view-options.ts';
import type { Projection } from '../read-model.ts';
import { logFraction } from '../generations/log-fraction.ts';

interface ReplayFillingOptions extends ProjectorParts, Partial<Pick<ProjectorTuning, 'onFill'>> {
  /** Named after the replay. */
  readonly projection: Projection;
  readonly generation: number;
  readonly until: Position;
  readonly rate: number | null;
  /** Events that an operator has skipped in the view. */
  readonly skipped: SkippedEvents;
}

/** Events per batch, as in a rebuild; fewer at a slow rate, so that rests are short. */
const MAX_BATCH = 4_000;

/** Builds one view as of a position: a generation of a log that ends there. */
export class ReplayFilling {
  readonly #options: ReplayFillingOptions;
  readonly #writer: GenerationWriter;
  readonly #filling: Filling;

  constructor(options: ReplayFillingOptions) {
    this.#options = options;
    this.#writer = new GenerationWriter({
      ...options,
      skipped: () => options.skipped,
      endsAtPoison: true,
      // Nothing is parked in bulk: it fails at an event that cannot be folded.
      parking: new Parking(options.readModel, options.fence),
      onPassed: () => undefined,
    });
    this.#filling = new Filling({
      ...options,
      writer: this.#writer,
      store: logUpTo(options.store, options.until),
      batchSize: Math.min(MAX_BATCH, Math.ceil((options.rate ?? Infinity) / 4)),
      rate: options.rate ?? undefined,
    });
  }

  get handled(): number {
    return this.#writer.handled;
  }

  get rate(): number {
    return this.#filling.status().events_per_second;
  }

  /** The filled share of the log up to the replay's position, 0..1. */
  get progress(): number {
    return logFraction(this.#filling.looked, this.#options.until);
  }

  /**
   * Fills the generation, continuing an earlier process's work.
   * @returns false if the signal was aborted
   * @throws PoisonedFillError
   */
  run(signal: AbortSignal): Promise<boolean> {
    return this.#filling.run(signal);
  }
}
