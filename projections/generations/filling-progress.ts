import type { Clock } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { errorMessage } from '../error-message.ts';
import type { FillingStatus } from '../projector/projection-status.ts';
import { retry } from '../projector/retry-loop.ts';
import { FinalFillError } from './generation-writer.ts';
import { logFraction } from './log-fraction.ts';

/** The progress of a fill so far. */
export interface FillingCounts {
  readonly version: number;
  readonly handled: number;
  readonly leftOut: number;
  /** All events of the view up to here were taken, or are being taken. */
  readonly looked: Position;
}

/** The progress shown until a fill is done: the log has grown since its end was read. */
const MAX_SHOWN = 0.99;

/** The progress of a fill, and an estimate of its remaining time. */
export class FillingProgress {
  detail: string | null = null;
  readonly #clock: Clock;
  readonly #rate: number | undefined;
  #state: 'paused' | 'filling' | 'filled' = 'paused';
  /** When the fill began or resumed, by the clock's `steady`, and its counts and progress at that time. */
  #began: number;
  #handledBefore = 0;
  #progressBefore: number | null = null;
  #end: Position = BEGINNING;

  /** @param rate the most events per second; undefined: unlimited */
  constructor(clock: Clock, rate?: number) {
    this.#clock = clock;
    this.#rate = rate;
    this.#began = clock.steady();
  }

  begin(handled: number): void {
    this.#state = 'filling';
    this.#began = this.#clock.steady();
    this.#handledBefore = handled;
    this.#progressBefore = null;
  }

  setEnd(end: Position, { looked }: Pick<FillingCounts, 'looked'>): void {
    this.#end = end;
    this.#progressBefore ??= this.#progress(looked);
  }

  /** When the rate allows this many events, by the clock's `steady`. */
  dueAt(handled: number): number {
    const seconds = (handled - this.#handledBefore) / (this.#rate ?? Infinity);
    return this.#began + seconds * 1000;
  }

  /**
   * Retries until the generation is filled, with pauses after failures.
   *
   * @param attempt returns whether the generation is filled; false: the signal was aborted
   * @returns whether the generation is filled
   * @throws FinalFillError
   */
  async retry(
    attempt: () => Promise<boolean>,
    about: {
      readonly projection: string;
      readonly telemetry: Telemetry;
      readonly signal: AbortSignal;
    },
  ): Promise<boolean> {
    const { projection, telemetry, signal } = about;
    const failure = `filling the view ${projection} was interrupted; retrying`;
    const isFilled = await retry(this.#clock, signal, attempt, (error) => {
      if (signal.aborted) return;
      this.detail = errorMessage(error);
      if (error instanceof FinalFillError) throw error;
      telemetry.failures.failed(failure, error);
    });
    telemetry.failures.worked(failure);
    this.#state = isFilled === true ? 'filled' : 'paused';
    if (isFilled === true) this.detail = null;
    return isFilled === true;
  }

  status({ version, handled, leftOut, looked }: FillingCounts): Omit<FillingStatus, 'state'> {
    const passed = Math.max(0.001, (this.#clock.steady() - this.#began) / 1000);
    // A large batch is followed by a rest, which counts as time taken.
    const seconds = Math.max(passed, (this.dueAt(handled) - this.#began) / 1000);
    const progress = this.#progress(looked);
    const gained = progress - (this.#progressBefore ?? progress);
    const rest = seconds - passed;
    const left = gained <= 0 ? null : Math.round(rest + (seconds / gained) * (1 - progress));
    const isFilling = this.#state === 'filling';
    return {
      version,
      handled,
      left_out: leftOut,
      progress,
      events_per_second: isFilling ? Math.round((handled - this.#handledBefore) / seconds) : 0,
      seconds_left: progress === 1 ? 0 : isFilling ? left : null,
      detail: this.detail,
    };
  }

  #progress(looked: Position): number {
    return this.#state === 'filled' ? 1 : Math.min(MAX_SHOWN, logFraction(looked, this.#end));
  }
}
