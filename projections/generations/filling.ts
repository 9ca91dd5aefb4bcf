import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import { errorMessage } from '../error-message.ts';
import type { ShareFill } from '../parallel-fill/share-fill.ts';
import type { ViewOptions } from '../projector/view-options.ts';
import type { Filler } from './build.ts';
import { FillingProgress, type FillingCounts } from './filling-progress.ts';
import type { GenerationWriter } from './generation-writer.ts';

interface FillingOptions
  extends Pick<ViewOptions, 'store' | 'clock' | 'telemetry'>, Partial<Pick<ViewOptions, 'onFill'>> {
  readonly writer: GenerationWriter;
  /**
   * Events per write. A run's events are close together, so one write takes them all. The events are folded as they
   * come and released at once, because the garbage collector has to copy long-lived objects.
   */
  readonly batchSize: number;
  readonly rate?: number | undefined;
  /** The share of a parallel fill; default: the whole generation. */
  readonly share?: ShareFill;
}

/** Fills a generation from the log's beginning, in bulk, and reports its progress. */
export class Filling implements Filler {
  readonly writer: GenerationWriter;
  readonly #options: FillingOptions;
  readonly #progress: FillingProgress;
  /** The log was read up to here, though without events of this view. */
  #looked: Position = BEGINNING;

  constructor(options: FillingOptions) {
    this.writer = options.writer;
    this.#options = options;
    this.#progress = new FillingProgress(options.clock, options.rate);
  }

  /**
   * Resolves with true when the generation has everything that was in the log, is indexed and closed; with false when
   * the signal was aborted. Waits for stores that do not answer.
   * @throws FinalFillError
   */
  async run(signal: AbortSignal): Promise<boolean> {
    const { telemetry } = this.#options;
    const projection = this.writer.projection.name;
    this.#progress.begin(this.writer.handled);
    let isFilled = false;
    try {
      const about = { projection, telemetry, signal };
      isFilled = await this.#progress.retry(() => this.#fill(signal), about);
    } finally {
      if (!isFilled) await this.#close();
    }
    return isFilled;
  }

  /** Nothing is lost by a failure here: unwritten events come again. */
  async #close(): Promise<void> {
    try {
      await this.writer.close();
    } catch (error) {
      const fields = { projection: this.writer.projection.name, error: errorMessage(error) };
      this.#options.telemetry.log.warn('could not close a paused view in order', fields);
    }
  }

  get looked(): Position {
    const { passed } = this.writer;
    return passed < this.#looked ? this.#looked : passed;
  }

  status(): ReturnType<Filler['status']> {
    return this.#progress.status(this.#counts());
  }

  #counts(): FillingCounts {
    const { generation, handled, leftOut } = this.writer;
    return { version: generation, handled, leftOut, looked: this.looked };
  }

  async #fill(signal: AbortSignal): Promise<boolean> {
    const { writer } = this;
    const { store, share } = this.#options;
    await writer.open(true);
    this.#progress.detail = null;
    this.#looked = writer.passed;
    this.#progress.setEnd(await store.head(), this.#counts());
    const feed = (from: EventStore): Promise<boolean> => this.#feed(from, signal);
    const part = share === undefined ? 'whole' : await share.run(writer, store, feed, signal);
    if (part !== 'whole') return part === 'filled';
    if (!(await feed(store))) return false;
    await writer.finish();
    await writer.close();
    return true;
  }

  /** @returns whether the generation is level with the log; false when the signal was aborted */
  async #feed(store: EventStore, signal: AbortSignal): Promise<boolean> {
    const { writer } = this;
    const { rate, batchSize, onFill } = this.#options;
    const done = new AbortController();
    const onEnd = rate === undefined ? onFill?.() : undefined;
    const messages = store.subscribe({
      after: writer.passed,
      prefixes: writer.projection.streams,
      share: writer.share ?? undefined,
      once: writer.share !== null,
      onPassed: (position) => (this.#looked = position),
      signal: AbortSignal.any([signal, done.signal]),
    });
    try {
      for await (const message of messages) {
        if (message.kind === 'events') {
          await writer.take(message.events, message.events.at(-1)?.position ?? writer.passed);
          if (writer.unwrittenEvents < batchSize) continue;
        } else {
          await writer.take([], message.position);
        }
        await writer.flush();
        await this.#keepToRate(signal);
        if (message.kind === 'caught-up') return true;
      }
      await writer.flush();
      return false;
    } finally {
      done.abort();
      onEnd?.();
    }
  }

  async #keepToRate(signal: AbortSignal): Promise<void> {
    const { rate, clock } = this.#options;
    if (rate === undefined || signal.aborted) return;
    const rest = this.#progress.dueAt(this.writer.handled) - clock.steady();
    if (rest > 0) await clock.sleep(rest, signal);
  }
}
