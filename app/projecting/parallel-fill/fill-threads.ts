import type { Worker } from 'node:worker_threads';
import type { Position } from '../../../domain/event-store.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { errorMessage } from '../../../projections/error-message.ts';
import {
  PoisonedShareError,
  type FillElsewhere,
  type FillListener,
  type FillOrder,
} from '../../../projections/parallel-fill/parallel-fill.ts';
import { parsePosition } from '../../../stores/sqlite/event-log/position.ts';
import { startThread } from '../../../stores/sqlite/start-thread.ts';
import { threadsFor, usableProcessors } from './thread-limits.ts';
import type { FillingPlace, FillingThreadData, FromFiller, ToFiller } from './filling-protocol.ts';

/** Events of the smallest log for which starting threads pays: filling it takes ten times as long as starting them. */
const MIN_EVENTS = 100_000;

/**
 * The heap limits of each thread, in MiB. Memory is taken as needed. They fold larger batches than the projector's
 * thread, and end soon.
 */
const HEAP = { maxYoungGenerationSizeMb: 96 } as const;

/**
 * Fills generations of the embedded views in threads of low priority, one per processor. Each folds a share of the
 * streams into a file of its own; the first merges the files and creates the indexes. After a thread has died, one
 * thread fills alone.
 */
export class FillingThreads implements FillElsewhere {
  readonly #place: FillingPlace;
  readonly #telemetry: Telemetry;
  #threads: number;
  readonly #leastEvents: number;

  /**
   * @param options.threads default: one per processor and per GiB that the process may use, at most 4
   * @param options.leastEvents of the smallest log that is filled in threads; default 100,000
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
    this.#leastEvents = options.leastEvents ?? MIN_EVENTS;
  }

  isWorthIt(head: Position): boolean {
    return parsePosition(head) >= this.#leastEvents;
  }

  async fill(order: FillOrder, listener: FillListener, signal: AbortSignal): Promise<boolean> {
    const of = this.#threads;
    const fillers: Filler[] = [];
    const stop = (): void => {
      for (const filler of fillers) filler.send({ kind: 'stop' });
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      const parts = {
        listener,
        onOpened: (filler: Filler, isPart: boolean) => startOthers(fillers, filler, isPart),
        onProgress: () => reportProgress(fillers, listener),
        telemetry: this.#telemetry,
      };
      while (fillers.length < of) {
        const share = { index: fillers.length, of };
        const filler = new Filler({ place: this.#place, order, share }, parts);
        fillers.push(filler);
        filler.ended.catch(stop);
      }
      if (signal.aborted) stop();
      return await mergeShares(fillers);
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

/** Starts the other shares once the first is open, unless it has them already. */
function startOthers([first, ...others]: readonly Filler[], opened: Filler, isPart: boolean): void {
  if (opened !== first) return;
  // The first share was merged and has been damaged since: the others have ended.
  if (isPart && first.isWhole) first.fail(new Error('the view starts anew'));
  first.isWhole = !isPart;
  for (const other of others) other.send({ kind: isPart ? 'begin' : 'stop' });
}

/**
 * Has the first merge the others once they are filled. Resolves when the first has ended.
 * @throws the error of a thread; preferably an event that cannot be folded
 */
async function mergeShares(fillers: readonly Filler[]): Promise<boolean> {
  const [first, ...others] = fillers;
  if (first === undefined) throw new RangeError('filling needs at least one thread');
  const othersFilled = Promise.all(others.map((other) => other.ended)).then((filled) => {
    if (filled.every(Boolean)) first.send({ kind: 'others-filled' });
  });
  const ended = await Promise.allSettled([
    first.ended,
    othersFilled,
    ...others.map((o) => o.ended),
  ]);
  const failures = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  const poisoned = failures.find((each) => each instanceof PoisonedShareError);
  if (failures.length > 0) throw poisoned ?? failures[0];
  return first.ended;
}

/** A thread ended by itself: out of memory, for example. */
class DeadThreadError extends Error {
  constructor(cause: unknown) {
    super(errorMessage(cause), { cause });
    this.name = 'DeadThreadError';
  }
}

function reportProgress(fillers: readonly Filler[], listener: FillListener): void {
  const reports = fillers.flatMap(({ progress }) => (progress === null ? [] : [progress]));
  // Until each has reported where it continues from, progress would seem to go back. Merged ones do not report.
  if (reports.length < fillers.length && fillers[0]?.isWhole !== true) return;
  const looked = reports.map(({ counts }) => counts.looked);
  const sum = (of: 'handled' | 'leftOut'): number =>
    reports.reduce((all, { counts }) => all + counts[of], 0);
  listener.onProgress(
    {
      handled: sum('handled'),
      leftOut: sum('leftOut'),
      looked: looked.reduce((one, other) => (one < other ? one : other)),
    },
    reports.find(({ detail }) => detail !== null)?.detail ?? null,
  );
}

class Filler {
  /** Resolves when the thread has ended, with whether its share is filled; false: it was stopped. */
  readonly ended: Promise<boolean>;
  #error: Error | null = null;
  progress: Extract<FromFiller, { kind: 'progress' }> | null = null;
  /** For the first share: whether the others are merged. */
  isWhole = false;
  readonly #thread: Worker;

  constructor(
    data: FillingThreadData,
    parts: {
      readonly listener: FillListener;
      readonly onOpened: (filler: Filler, isPart: boolean) => void;
      readonly onProgress: () => void;
      readonly telemetry: Telemetry;
    },
  ) {
    const { listener, onOpened, onProgress, telemetry } = parts;
    const thread = startThread('./filling-thread', import.meta.url, data, HEAP);
    this.#thread = thread;
    let isFilled = false;
    thread.on('message', (message: FromFiller) => {
      if (message.kind === 'progress') {
        this.progress = message;
        onProgress();
      } else if (message.kind === 'park') void this.#park(message, listener);
      else if (message.kind === 'count') telemetry.count(message.name, message.labels, message.by);
      else if (message.kind === 'opened') onOpened(this, message.isPart);
      else if (message.kind === 'filled') isFilled = true;
      else if (message.kind === 'poisoned') this.#error = new PoisonedShareError(message.poisoned);
      else this.#error = new Error(message.error);
    });
    this.ended = new Promise((resolve, reject) => {
      thread.once('error', (error) => (this.#error ??= new DeadThreadError(error)));
      thread.once('exit', (code) => {
        if (code !== 0)
          this.#error ??= new DeadThreadError(`a filling thread exited with code ${code}`);
        if (this.#error === null) resolve(isFilled);
        else reject(this.#error);
      });
    });
  }

  fail(error: Error): void {
    this.#error ??= error;
    this.send({ kind: 'stop' });
  }

  send(message: ToFiller): void {
    this.#thread.postMessage(message);
  }

  async #park(
    { id, view, poisoned }: Extract<FromFiller, { kind: 'park' }>,
    { parking }: FillListener,
  ): Promise<void> {
    let error: string | null = null;
    try {
      await parking.park(view, poisoned);
    } catch (cause) {
      error = errorMessage(cause);
    }
    this.send({ kind: 'parked', id, error });
  }
}
