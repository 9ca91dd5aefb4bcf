import { fromIso, type Cancel, type Instant } from '../../domain/clock.ts';
import { isOpen, type Wait } from '../../domain/runs/run-waits.ts';
import { endAtLimit } from '../../domain/runs/wait-limits.ts';
import { Heap } from '../heap.ts';
import { neverHeld, type HoldView } from '../hold.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { RunParts } from '../runs/run-work.ts';
import type { WaitResumer } from './wait-resumer.ts';

/** The message that reports a failure. */
const FAILURE = 'could not end a wait; retrying';

/** How long other processes leave due waits to the leader. Milliseconds. */
const HOLD_BACK = 2000;

/** Milliseconds before a failed write of a resumption is repeated. */
const RETRY_AFTER = 500;

/** How many resumptions are written at the same time. */
const CONCURRENT_APPENDS = 256;

interface TimersOptions extends Pick<RunParts, 'queue' | 'clock' | 'telemetry'> {
  readonly resumer: WaitResumer;
  readonly leadership: Pick<Leadership, 'leads' | 'onChange'>;
  /** Whether the service is on hold. Default: never. */
  readonly hold?: HoldView;
  /**
   * Whether a due wait ends by its limit. False if the awaited event has arrived, or if that is not known yet. Default:
   * always true. Called again after a rejection.
   */
  readonly isUnmet?: (run: QueuedRun, wait: Wait) => Promise<boolean>;
}

/** A wait that ends by itself. */
interface TimedWait {
  readonly at: Instant;
  readonly run: QueuedRun;
  readonly waitId: string;
}

/**
 * Ends waits at their time: timers, and all others at their limit. Only one timer is set, for the earliest wait.
 * Several processes may run it; the append decides.
 */
export class WaitTimers {
  readonly #options: TimersOptions;
  readonly #hold: HoldView;
  readonly #heap = new Heap<TimedWait>((one, other) => one.at < other.at);
  /** The runs of the waits in the heap, by wait. After an interruption, a run has a new object. */
  readonly #known = new Map<string, QueuedRun>();
  readonly #writing = new Set<Promise<void>>();
  #cancelTimer: Cancel = () => {};
  #timerAt: Instant | null = null;
  #stopped = false;

  constructor(options: TimersOptions) {
    this.#options = options;
    this.#hold = options.hold ?? neverHeld;
    options.queue.subscribe({ onWaits: (run) => this.#add(run) });
    options.leadership.onChange(() => this.#arm());
  }

  /** Notes that the hold has started or ended. */
  holdChanged(): void {
    this.#arm();
  }

  /** Ends no more waits. Resolves when nothing is being written. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    await Promise.all(this.#writing);
  }

  #add(run: QueuedRun): void {
    for (const wait of run.waits) {
      if (!isOpen(wait) || this.#known.get(wait.wait_id) === run) continue;
      this.#known.set(wait.wait_id, run);
      this.#heap.push({ at: fromIso(wait.until), run, waitId: wait.wait_id });
    }
    this.#arm();
  }

  #arm(): void {
    if (this.#stopped || this.#hold.held) return;
    const { clock, leadership } = this.#options;
    this.#dropEnded();
    const next = this.#heap.peek();
    const at = next === undefined ? null : next.at + (leadership.leads ? 0 : HOLD_BACK);
    if (at === this.#timerAt) return;
    this.#cancelTimer();
    this.#timerAt = at;
    if (at !== null) this.#cancelTimer = clock.at(at, () => this.#wake());
  }

  #wake(): void {
    this.#timerAt = null;
    if (this.#stopped || this.#hold.held) return;
    const { clock, leadership } = this.#options;
    const dueUpTo = clock.now() - (leadership.leads ? 0 : HOLD_BACK);
    while (this.#writing.size < CONCURRENT_APPENDS) {
      this.#dropEnded();
      const next = this.#heap.peek();
      if (next === undefined || next.at > dueUpTo) break;
      this.#heap.pop();
      this.#follow(this.#end(next));
    }
    // The others are written after these.
    if (this.#writing.size < CONCURRENT_APPENDS) this.#arm();
  }

  #follow(ending: Promise<void>): void {
    this.#writing.add(ending);
    void ending.then(() => {
      this.#writing.delete(ending);
      this.#wake();
    });
  }

  /** Never rejects. */
  async #end(timed: TimedWait): Promise<void> {
    const { resumer, clock, telemetry, isUnmet } = this.#options;
    const { run, waitId } = timed;
    const wait = openWait(timed);
    if (wait === undefined) return this.#forget(timed);
    const now = clock.now();
    const until = fromIso(wait.until);
    try {
      // A repeated call of the tool may have moved the limit.
      if (until > now) this.#heap.push({ ...timed, at: until });
      else if ((await isUnmet?.(run, wait)) === false)
        this.#heap.push({ ...timed, at: now + RETRY_AFTER });
      else {
        await resumer.resume(run, waitId, endAtLimit(wait, now));
        telemetry.observe('wait_lateness_seconds', (now - until) / 1000);
        this.#forget(timed);
      }
      telemetry.failures.worked(FAILURE);
    } catch (error) {
      telemetry.failures.failed(FAILURE, error, { run: run.id, step: wait.step });
      this.#heap.push({ ...timed, at: now + RETRY_AFTER });
    }
  }

  /** Removes waits that ended in another way from the top of the heap. */
  #dropEnded(): void {
    for (let top = this.#heap.peek(); top !== undefined; top = this.#heap.peek()) {
      if (openWait(top) !== undefined) return;
      this.#heap.pop();
      this.#forget(top);
    }
  }

  #forget({ run, waitId }: TimedWait): void {
    if (this.#known.get(waitId) === run) this.#known.delete(waitId);
  }
}

function openWait({ run, waitId }: TimedWait): Wait | undefined {
  if (run.ended) return undefined;
  return run.waits.find((wait) => wait.wait_id === waitId && isOpen(wait));
}
