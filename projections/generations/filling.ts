import type { Clock } from '../../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { BackOff } from '../projector/back-off.ts';
import { PoisonedFillError, type GenerationFeeder } from './generation-feeder.ts';
import type { FillingStatus, RebuildState } from '../projector/projection-status.ts';
import { shareOfLog } from './share-of-log.ts';

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
}

/** As much as is shown before everything is there: what comes meanwhile lies behind the log's end as it was. */
const ALMOST = 0.99;

/** Makes a generation from the log's beginning, in bulk, and knows how far it is. */
export class Filling {
  readonly feeder: GenerationFeeder;
  readonly #options: FillingOptions;
  /** When it began, or went on after a rest, by the clock's `steady`; and what it had handled, and how far it was, by then. */
  #began: number;
  #handledBefore = 0;
  #progressBefore: number | null = null;
  /** Of the log when this began. */
  #end: Position = BEGINNING;
  /** Where nothing stood that is the view's, the log was looked at up to here. */
  #looked: Position = BEGINNING;
  #state: RebuildState = 'paused';
  #detail: string | null = null;

  constructor(options: FillingOptions) {
    this.feeder = options.feeder;
    this.#options = options;
    this.#began = options.clock.steady();
  }

  /**
   * Resolves with true when the generation has everything that was in the log, is indexed and closed; with
   * false when the signal was aborted. A store that does not answer is waited for.
   * @throws PoisonedFillError
   */
  async run(signal: AbortSignal): Promise<boolean> {
    const { clock, telemetry } = this.#options;
    const backOff = new BackOff(clock);
    this.#state = 'filling';
    this.#began = clock.steady();
    this.#handledBefore = this.feeder.handled;
    this.#progressBefore = null;
    while (!signal.aborted) {
      try {
        if (await this.#fill(signal)) {
          this.#state = 'catching_up';
          this.#detail = null;
          return true;
        }
      } catch (error) {
        if (signal.aborted) break;
        this.#detail = error instanceof Error ? error.message : String(error);
        if (error instanceof PoisonedFillError) {
          await this.#close();
          throw error;
        }
        telemetry.log.warn('the filling of a view was interrupted; it is tried again', {
          projection: this.feeder.projection.name,
          error: this.#detail,
        });
        await backOff.wait(signal);
      }
    }
    await this.#close();
    this.#state = 'paused';
    return false;
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

  /** It is level with the generation that is read, and could take its place. */
  ready(): void {
    this.#state = 'ready';
  }

  /** It will not become the live generation. */
  failed(detail: string): void {
    this.#state = 'failed';
    this.#detail = detail;
  }

  /** All that is the view's up to here was taken, or is being taken. */
  get looked(): Position {
    const { passed } = this.feeder;
    return passed < this.#looked ? this.#looked : passed;
  }

  /** How far it is; what its order says stands beside it. */
  status(): FillingStatus {
    const seconds = Math.max(0.001, (this.#options.clock.steady() - this.#began) / 1000);
    const progress = this.#progress();
    const gained = progress - (this.#progressBefore ?? progress);
    const handled = this.feeder.handled - this.#handledBefore;
    const left = gained === 0 ? null : Math.round((seconds / gained) * (1 - progress));
    const goesOn = this.#state === 'filling';
    return {
      version: this.feeder.generation,
      state: this.#state,
      handled: this.feeder.handled,
      left_out: this.feeder.leftOut,
      progress,
      events_per_second: goesOn ? Math.round(handled / seconds) : 0,
      seconds_left: progress === 1 ? 0 : goesOn ? left : null,
      detail: this.#detail,
    };
  }

  async #fill(signal: AbortSignal): Promise<boolean> {
    const { feeder } = this;
    await feeder.open(true);
    this.#detail = null;
    this.#end = await this.#options.store.head();
    this.#looked = feeder.passed;
    this.#progressBefore ??= this.#progress();
    const own = new AbortController();
    const messages = this.#options.store.subscribe({
      after: feeder.passed,
      prefixes: feeder.projection.streams,
      ahead: this.#options.rate === undefined,
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
        if (message.kind !== 'caught-up') continue;
        await feeder.finish();
        await feeder.close();
        return true;
      }
      await feeder.flush();
      return false;
    } finally {
      own.abort();
    }
  }

  /** Keeps to the rate. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { rate, clock } = this.#options;
    if (rate === undefined) return;
    const due = this.#began + ((this.feeder.handled - this.#handledBefore) / rate) * 1000;
    if (due > clock.steady() && !signal.aborted) await clock.sleep(due - clock.steady(), signal);
  }

  #progress(): number {
    if (this.#state === 'catching_up' || this.#state === 'ready') return 1;
    return Math.min(ALMOST, shareOfLog(this.looked, this.#end));
  }
}
