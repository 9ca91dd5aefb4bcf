import type { Clock } from '../../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { FillingStatus } from '../projector/projection-status.ts';
import { endingAt } from './ending-at.ts';
import { FillingProgress, type FillingCounts } from './filling-progress.ts';
import { PoisonedFillError, type GenerationFeeder } from './generation-feeder.ts';
import type { Making } from './making.ts';

export interface FillingOptions {
  readonly feeder: GenerationFeeder;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /**
   * Events to a write. A run's events lie near each other, so that one write takes them all. The events themselves are
   * folded as they come and let go of at once: what lives long is what the garbage collector has to copy.
   */
  readonly batchSize: number;
  /** Events a second at most; default: as fast as it goes. */
  readonly rate?: number | undefined;
  /** Told whenever the generation is open. */
  readonly onOpened?: () => void;
  /** Of one that fills a share: where all of them end, so that they can be taken together. */
  readonly sharesEnd?: Position;
  /** Of one that fills share 0: resolves once those who fill the others have ended. */
  readonly others?: () => Promise<void>;
}

/** The shares of a generation could not be taken together: one of them may be gone, and who fills it too. */
export class SharesError extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'SharesError';
  }
}

/** Makes a generation from the log's beginning, in bulk, and knows how far it is. */
export class Filling implements Making {
  readonly feeder: GenerationFeeder;
  readonly #options: FillingOptions;
  readonly #progress: FillingProgress;
  /** Where nothing stood that is the view's, the log was looked at up to here. */
  #looked: Position = BEGINNING;

  constructor(options: FillingOptions) {
    this.feeder = options.feeder;
    this.#options = options;
    this.#progress = new FillingProgress(options.clock, options.rate);
  }

  /**
   * Resolves with true when the generation has everything that was in the log, is indexed and closed; with
   * false when the signal was aborted. A store that does not answer is waited for.
   * @throws PoisonedFillError; SharesError
   */
  async run(signal: AbortSignal): Promise<boolean> {
    const { telemetry } = this.#options;
    const { projection } = this.feeder;
    this.#progress.begin(this.feeder.handled);
    let isFilled = false;
    try {
      isFilled = await this.#progress.tries(
        () => this.#fill(signal),
        (error) => error instanceof PoisonedFillError || error instanceof SharesError,
        { projection: projection.name, telemetry, signal },
      );
    } finally {
      if (!isFilled) await this.#close();
    }
    return isFilled;
  }

  /** Lets go of what is there. What could not be kept of it is no harm: it comes again with the next beginning. */
  async #close(): Promise<void> {
    try {
      await this.feeder.close();
    } catch (error) {
      this.#options.telemetry.log.warn('a view that rests could not be closed in order', {
        projection: this.feeder.projection.name,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  ready(): void {
    this.#progress.is('ready');
  }

  failed(detail: string): void {
    this.#progress.is('failed', detail);
  }

  /** All that is the view's up to here was taken, or is being taken. */
  get looked(): Position {
    const { passed } = this.feeder;
    return passed < this.#looked ? this.#looked : passed;
  }

  status(): FillingStatus {
    return this.#progress.status(this.#counts());
  }

  #counts(): FillingCounts {
    const { generation, handled, leftOut } = this.feeder;
    return { version: generation, handled, leftOut, looked: this.looked };
  }

  async #fill(signal: AbortSignal): Promise<boolean> {
    const { feeder } = this;
    await feeder.open(true);
    this.#options.onOpened?.();
    this.#progress.detail = null;
    this.#looked = feeder.passed;
    this.#progress.goesTo(await this.#options.store.head(), this.#counts());
    if (feeder.share !== null) {
      if (!(await this.#feed(signal))) return false;
      if (feeder.share.index > 0) {
        await feeder.close();
        return true;
      }
      await this.#options.others?.();
      if (signal.aborted) return false;
      await this.#takeIn();
    }
    if (!(await this.#feed(signal))) return false;
    await feeder.finish();
    await feeder.close();
    return true;
  }

  /** @returns whether it is level with the log; false when the signal was aborted */
  async #feed(signal: AbortSignal): Promise<boolean> {
    const { feeder } = this;
    const { store, sharesEnd } = this.#options;
    const own = new AbortController();
    const isPart = feeder.share !== null && sharesEnd !== undefined;
    const messages = (isPart ? endingAt(store, sharesEnd) : store).subscribe({
      after: feeder.passed,
      prefixes: feeder.projection.streams,
      share: feeder.share ?? undefined,
      once: feeder.share !== null,
      // Those who share the streams keep the processors busy by themselves.
      ahead: this.#options.rate === undefined && !isPart,
      onPassed: (position) => (this.#looked = position),
      signal: AbortSignal.any([signal, own.signal]),
    });
    try {
      for await (const message of messages) {
        if (message.kind === 'events') {
          await feeder.take(message.events, message.events.at(-1)?.position ?? feeder.passed);
          if (feeder.unwrittenEvents < this.#options.batchSize) continue;
        } else {
          await feeder.take([], message.position);
        }
        await feeder.flush();
        await this.#rest(signal);
        if (message.kind === 'caught-up') return true;
      }
      await feeder.flush();
      return false;
    } finally {
      own.abort();
    }
  }

  async #takeIn(): Promise<void> {
    try {
      await this.feeder.takeIn();
    } catch (error) {
      throw new SharesError(error);
    }
  }

  /** Keeps to the rate. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { rate, clock } = this.#options;
    if (rate === undefined) return;
    const due = this.#progress.dueAt(this.feeder.handled);
    if (due > clock.steady() && !signal.aborted) await clock.sleep(due - clock.steady(), signal);
  }
}
