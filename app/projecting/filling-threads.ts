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
import { threadsFor, usableProcessors } from './filling-limits.ts';
import type { FillingPlace, FillingThreadData, FromFiller, ToFiller } from './filling-protocol.ts';

/** Events of a log from which on threads are worth their start: filling these takes some ten times as long. */
const LEAST_EVENTS = 100_000;

/**
 * Of each. They fold much more at a time than what follows the log, and are gone afterwards. MiB; taken only as it is
 * needed.
 */
const HEAP = { maxYoungGenerationSizeMb: 96 } as const;

/**
 * Fills generations of the embedded views in threads, one for each processor, that give way to all others. Each folds a
 * share of the streams into a file of its own; the first takes in those of the others, and makes the indexes. Where one
 * has died, one fills alone from then on.
 */
export class FillingThreads implements FillElsewhere {
  readonly #place: FillingPlace;
  readonly #telemetry: Telemetry;
  #threads: number;
  readonly #leastEvents: number;

  /**
   * @param options.threads default: one for each processor, and for each GiB that the process may take, at most 4
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
    this.#threads = options.threads ?? threadsFor(usableProcessors(), process.constrainedMemory());
    this.#leastEvents = options.leastEvents ?? LEAST_EVENTS;
  }

  isWorthIt(head: Position): boolean {
    return parsePosition(head) >= this.#leastEvents;
  }

  async fill(order: FillOrder, listener: FillListener, signal: AbortSignal): Promise<boolean> {
    const of = this.#threads;
    const fillers: Filler[] = [];
    const stop = (): void => {
      for (const filler of fillers) filler.tell({ kind: 'stop' });
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      const parts = {
        listener,
        onChange: () => tellProgress(fillers, listener),
        telemetry: this.#telemetry,
      };
      while (fillers.length < of) {
        const share = { index: fillers.length, of };
        const filler = new Filler({ place: this.#place, order, share }, parts);
        fillers.push(filler);
        filler.ended.catch(stop);
      }
      if (signal.aborted) stop();
      return await together(fillers);
    } catch (error) {
      stop();
      if (error instanceof DeadThreadError) this.#threads = 1;
      throw error;
    } finally {
      await Promise.allSettled(fillers.map(({ ended }) => ended));
      signal.removeEventListener('abort', stop);
    }
  }
}

/**
 * Lets the first take in the others once they are filled. Resolves once the first has gone.
 * @throws what ended one of them; an event that can't be folded before all else
 */
async function together(fillers: readonly Filler[]): Promise<boolean> {
  const [first, ...others] = fillers;
  if (first === undefined) throw new RangeError('without a thread nothing is filled');
  first.onOpened = (isPart) => {
    // It was whole, and is damaged: the others have gone.
    if (isPart && first.isWhole) first.fail(new Error('the view is begun anew'));
    first.isWhole = !isPart;
    // Where it has the others already, they have nothing to do.
    for (const other of others) other.tell({ kind: isPart ? 'begin' : 'stop' });
  };
  const othersFilled = Promise.all(others.map((other) => other.ended)).then((filled) => {
    if (filled.every(Boolean)) first.tell({ kind: 'others-filled' });
  });
  const ended = await Promise.allSettled([
    first.ended,
    othersFilled,
    ...others.map((o) => o.ended),
  ]);
  const failures = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  const poisoned = failures.find((each) => each instanceof PoisonedElsewhereError);
  if (failures.length > 0) throw poisoned ?? failures[0];
  return first.ended;
}

/** A thread has ended by itself: it had no memory left, say. */
class DeadThreadError extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'DeadThreadError';
  }
}

/** What all of them have done together; they are as far as the last of them. */
function tellProgress(fillers: readonly Filler[], listener: FillListener): void {
  const told = fillers.flatMap(({ progress }) => (progress === null ? [] : [progress]));
  // As long as one has yet to say from where it goes on, it would seem to go back. Those that are in it say nothing.
  if (told.length < fillers.length && fillers[0]?.isWhole !== true) return;
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
  /** Of the first: the others are in it. */
  isWhole = false;
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
      thread.once('error', (error) => (this.#failure ??= new DeadThreadError(error)));
      thread.once('exit', (code) => {
        if (code !== 0) this.#failure ??= new DeadThreadError(`it ended with code ${code}`);
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
