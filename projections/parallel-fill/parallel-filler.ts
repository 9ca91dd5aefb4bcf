import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { Filler } from '../generations/build.ts';
import { FillingProgress, type FillingCounts } from '../generations/filling-progress.ts';
import { PoisonedFillError, type GenerationWriter } from '../generations/generation-writer.ts';
import type { ViewOptions } from '../projector/view-options.ts';
import {
  PoisonedShareError,
  type FillElsewhere,
  type FillListener,
  type FillOrder,
} from './parallel-fill.ts';

/**
 * Has a generation filled by other threads. In the meantime this thread follows the log, even while indexes are
 * created.
 */
export class ParallelFiller implements Filler {
  readonly writer: GenerationWriter;
  readonly #options: ConstructorParameters<typeof ParallelFiller>[0];
  readonly #order: (head: Position) => FillOrder;
  readonly #progress: FillingProgress;
  #counts: Omit<FillingCounts, 'version'> = { handled: 0, leftOut: 0, looked: BEGINNING };

  /** @param options.writer opened here once the generation is filled */
  constructor(
    options: Pick<ViewOptions, 'parking' | 'store' | 'clock' | 'telemetry'> & {
      readonly writer: GenerationWriter;
      readonly elsewhere: FillElsewhere;
    },
    order: (head: Position) => FillOrder,
  ) {
    this.writer = options.writer;
    this.#options = options;
    this.#order = order;
    this.#progress = new FillingProgress(options.clock);
  }

  run(signal: AbortSignal): Promise<boolean> {
    const { telemetry } = this.#options;
    const projection = this.writer.projection.name;
    this.#progress.begin(this.#counts.handled);
    return this.#progress.retry(() => this.#fill(signal), { projection, telemetry, signal });
  }

  status(): ReturnType<Filler['status']> {
    return this.#progress.status({ version: this.writer.generation, ...this.#counts });
  }

  async #fill(signal: AbortSignal): Promise<boolean> {
    const { elsewhere, parking, store } = this.#options;
    const head = await store.head();
    let end: Position | null = head;
    const before = this.#counts.handled;
    const onProgress: FillListener['onProgress'] = (counts, detail) => {
      this.#counts = { ...counts, handled: before + counts.handled };
      this.#progress.detail = detail;
      // The first report contains the position from which the fill continues.
      if (end !== null) this.#progress.setEnd(end, counts);
      end = null;
    };
    try {
      const listener = { onProgress, parking };
      if (!(await elsewhere.fill(this.#order(head), listener, signal))) return false;
    } catch (error) {
      if (!(error instanceof PoisonedShareError)) throw error;
      throw new PoisonedFillError(this.writer.projection.name, error.poisoned);
    }
    // Reads the checkpoint.
    await this.writer.open(false);
    await this.writer.close();
    this.writer.handled = this.#counts.handled;
    this.writer.leftOut = this.#counts.leftOut;
    return true;
  }
}
