import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import type { Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  PoisonedElsewhereError,
  type FillElsewhere,
  type FillListener,
  type FillOrder,
} from '../../projections/generations/filling-beside.ts';
import { parsePosition } from '../../stores/sqlite/event-log/position.ts';
import { startThread } from '../../stores/sqlite/read-model/start-thread.ts';
import type { FillingPlace, FillingThreadData, FromFiller, ToFiller } from './filling-protocol.ts';

/** Events of a log from which on threads are worth their start: it takes some tenths of a second, as filling these does. */
const LEAST_EVENTS = 100_000;

/** Threads at most: what comes after the shares, taking them in and making indexes, is done by one. */
const MOST_THREADS = 4;

/**
 * Of each. They fold much more at a time than what follows the log, and are gone afterwards. MiB; taken only as it is
 * needed.
 */
const HEAP = { maxYoungGenerationSizeMb: 96 } as const;

/**
 * Fills generations of the embedded views in threads, one for each processor, that give way to all others. Each folds a
 * share of the streams into a file of its own; the first takes in those of the others, and makes the indexes.
 */
export class FillingThreads implements FillElsewhere {
  readonly #place: FillingPlace;
  readonly #telemetry: Telemetry;
  readonly #threads: number;
  readonly #leastEvents: number;

  /**
   * @param options.threads default: one for each processor, at most 4
   * @param options.leastEvents of a log that is worth it; default 100,000
   */
  constructor(options: {
    readonly place: FillingPlace;
    readonly telemetry: Telemetry;
    readonly threads?: number;
    readonly leastEvents?: number;
  }) {
    this.#place = options.place;
    this.#telemetry = options.telemetry;
    this.#threads = options.threads ?? Math.min(MOST_THREADS, availableParallelism());
    this.#leastEvents = options.leastEvents ?? LEAST_EVENTS;
  }

  isWorthIt(head: Position): boolean {
    return parsePosition(head) >= this.#leastEvents;
  }

  async fill(order: FillOrder, listener: FillListener, signal: AbortSignal): Promise<boolean> {
    const of = this.#threads;
    const fillers = Array.from({ length: of }, (_, index) => {
      const onChange = (): void => tellProgress(fillers, listener);
      const parts = { listener, onChange, telemetry: this.#telemetry };
      return new Filler({ place: this.#place, order, share: { index, of } }, parts);
    });
    const [first, ...others] = fillers;
    if (first === undefined) throw new RangeError('without a thread nothing is filled');
    const stop = (): void => {
      for (const filler of fillers) filler.tell({ kind: 'stop' });
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    let isWhole = false;
    first.onOpened = (isPart) => {
      // It was whole, and is damaged: the others have gone.
      if (isPart && isWhole) first.fail(new Error('the view is begun anew'));
      isWhole = !isPart;
      // Where it has the others already, they have nothing to do.
      for (const other of others) other.tell({ kind: isPart ? 'begin' : 'stop' });
    };
    const othersFilled = Promise.all(others.map((other) => other.ended)).then((filled) => {
      if (filled.every(Boolean)) first.tell({ kind: 'others-filled' });
    });
    for (const { ended } of fillers) ended.catch(stop);
    try {
      const ended = await Promise.allSettled([first.ended, othersFilled]);
      await Promise.allSettled(others.map((other) => other.ended));
      const failures = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
      const poisoned = failures.find((each) => each instanceof PoisonedElsewhereError);
      if (failures.length > 0) throw poisoned ?? failures[0];
      return await first.ended;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** What all of them have done together; they are as far as the last of them. */
function tellProgress(fillers: readonly Filler[], listener: FillListener): void {
  const told = fillers.flatMap(({ progress }) => (progress === null ? [] : [progress]));
  const looked = told.map(({ counts }) => counts.looked);
  const sum = (of: 'handled' | 'leftOut'): number =>
    told.reduce((all, { counts }) => all + counts[of], 0);
  listener.onProgress(
    {
      handled: sum('handled'),
      leftOut: sum('leftOut'),
      looked: looked.reduce((one, other) => (one < other ? one : other)),
    },
    told.find(({ detail }) => detail !== null)?.detail ?? null,
  );
}

/** One thread. */
class Filler {
  /** Resolves with whether its share is filled, once the thread has gone; false: it was told to stop. */
  readonly ended: Promise<boolean>;
  #failure: Error | null = null;
  progress: Extract<FromFiller, { kind: 'progress' }> | null = null;
  onOpened: (isPart: boolean) => void = () => {};
  readonly #thread: Worker;

  constructor(
    data: FillingThreadData,
    parts: {
      readonly listener: FillListener;
      readonly onChange: () => void;
      readonly telemetry: Telemetry;
    },
  ) {
    const { listener, onChange, telemetry } = parts;
    const thread = startThread('./filling-thread', import.meta.url, data, HEAP);
    this.#thread = thread;
    let isFilled = false;
    thread.on('message', (message: FromFiller) => {
      if (message.kind === 'progress') {
        this.progress = message;
        onChange();
      } else if (message.kind === 'park') void this.#park(message, listener);
      else if (message.kind === 'count') telemetry.count(message.name, message.labels, message.by);
      else if (message.kind === 'opened') this.onOpened(message.isPart);
      else if (message.kind === 'filled') isFilled = true;
      else if (message.kind === 'poisoned')
        this.#failure = new PoisonedElsewhereError(message.poisoned);
      else this.#failure = new Error(message.error);
    });
    this.ended = new Promise((resolve, reject) => {
      thread.once('error', (error) => (this.#failure ??= error));
      thread.once('exit', (code) => {
        if (code !== 0) this.#failure ??= new Error(`a thread ended with code ${code}`);
        if (this.#failure === null) resolve(isFilled);
        else reject(this.#failure);
      });
    });
  }

  /** Ends it. */
  fail(failure: Error): void {
    this.#failure ??= failure;
    this.tell({ kind: 'stop' });
  }

  tell(message: ToFiller): void {
    this.#thread.postMessage(message);
  }

  async #park(
    { turn, view, poisoned }: Extract<FromFiller, { kind: 'park' }>,
    { parking }: FillListener,
  ): Promise<void> {
    let error: string | null = null;
    try {
      await parking.park(view, poisoned);
    } catch (fault) {
      error = fault instanceof Error ? fault.message : String(fault);
    }
    this.tell({ kind: 'parked', turn, error });
  }
}
