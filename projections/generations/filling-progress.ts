import type { Clock } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { FillingStatus, RebuildState } from '../projector/projection-status.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { BackOff } from '../projector/back-off.ts';
import { shareOfLog } from './share-of-log.ts';

/** What has been done of the making of a generation. */
export interface FillingCounts {
  /** The generation. */
  readonly version: number;
  /** Events folded. */
  readonly handled: number;
  readonly leftOut: number;
  /** All that is the view's up to here was taken, or is being taken. */
  readonly looked: Position;
}

/** As much as is shown before everything is there: what comes meanwhile lies behind the log's end as it was. */
const ALMOST = 0.99;

/** How far the making of a generation is, and how long it will take. */
export class FillingProgress {
  /** What is wrong; null while nothing is. */
  detail: string | null = null;
  readonly #clock: Clock;
  readonly #rate: number | undefined;
  #state: RebuildState = 'paused';
  /** When it began, or went on after a rest, by the clock's `steady`; and what it had handled, and how far it was, by then. */
  #began: number;
  #handledBefore = 0;
  #progressBefore: number | null = null;
  /** Of the log when this began. */
  #end: Position = BEGINNING;

  /** @param rate events a second that it keeps to; undefined: as many as can be */
  constructor(clock: Clock, rate?: number) {
    this.#clock = clock;
    this.#rate = rate;
    this.#began = clock.steady();
  }

  /** It begins, or goes on after a rest. @param handled by then */
  begin(handled: number): void {
    this.#state = 'filling';
    this.#began = this.#clock.steady();
    this.#handledBefore = handled;
    this.#progressBefore = null;
  }

  /** Where the log ends as it begins, or goes on. */
  goesTo(end: Position, { looked }: Pick<FillingCounts, 'looked'>): void {
    this.#end = end;
    this.#progressBefore ??= this.#progress(looked);
  }

  is(state: RebuildState, detail: string | null = null): void {
    this.#state = state;
    this.detail = detail;
  }

  /** When so many are to have been handled, by the clock's `steady`. */
  dueAt(handled: number): number {
    const seconds = (handled - this.#handledBefore) / (this.#rate ?? Infinity);
    return this.#began + seconds * 1000;
  }

  /**
   * Tries until it is filled, with a pause after each failure, and says how it stands.
   *
   * @param attempt whether it is filled; false: the signal was aborted
   * @param ends whether an error is the end of it
   * @returns whether it is filled
   * @throws what ends it
   */
  async tries(
    attempt: () => Promise<boolean>,
    ends: (error: unknown) => boolean,
    about: {
      readonly projection: string;
      readonly telemetry: Telemetry;
      readonly signal: AbortSignal;
    },
  ): Promise<boolean> {
    const { projection, telemetry, signal } = about;
    const backOff = new BackOff(this.#clock);
    while (!signal.aborted) {
      try {
        if (await attempt()) {
          this.is('catching_up');
          return true;
        }
      } catch (error) {
        if (signal.aborted) break;
        this.detail = error instanceof Error ? error.message : String(error);
        if (ends(error)) throw error;
        telemetry.log.warn('the filling of a view was interrupted; it is tried again', {
          projection,
          error: this.detail,
        });
        await backOff.wait(signal);
      }
    }
    this.is('paused', this.detail);
    return false;
  }

  status({ version, handled: all, leftOut, looked }: FillingCounts): FillingStatus {
    const passed = Math.max(0.001, (this.#clock.steady() - this.#began) / 1000);
    // What has come in a large piece is rested for: it counts as if it had taken that time.
    const seconds = Math.max(passed, (this.dueAt(all) - this.#began) / 1000);
    const progress = this.#progress(looked);
    const gained = progress - (this.#progressBefore ?? progress);
    const handled = all - this.#handledBefore;
    const rest = seconds - passed;
    const left = gained <= 0 ? null : Math.round(rest + (seconds / gained) * (1 - progress));
    const goesOn = this.#state === 'filling';
    return {
      version,
      state: this.#state,
      handled: all,
      left_out: leftOut,
      progress,
      events_per_second: goesOn ? Math.round(handled / seconds) : 0,
      seconds_left: progress === 1 ? 0 : goesOn ? left : null,
      detail: this.detail,
    };
  }

  #progress(looked: Position): number {
    if (this.#state === 'catching_up' || this.#state === 'ready') return 1;
    return Math.min(ALMOST, shareOfLog(looked, this.#end));
  }
}
