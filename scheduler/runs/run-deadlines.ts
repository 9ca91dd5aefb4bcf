import { toIso, type Cancel } from '../../domain/clock.ts';
import { isConflict } from '../../domain/event-store.ts';
import { load, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { runFold, timeOutRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { Heap } from '../heap.ts';
import { neverHeld, type HoldView } from '../hold.ts';
import { isPreferred } from './preferred-worker.ts';
import { recordEnd } from './run-ending.ts';
import type { QueuedRun } from './queued-run.ts';
import type { RunParts } from './run-work.ts';

/** The message that reports a failure. */
const FAILURE = 'could not end a run that has timed out; retrying';

/** How long this process waits for the preferred worker to end a run. Milliseconds. */
const HOLD_BACK = 75;

/** Milliseconds before a failed attempt is repeated. */
const RETRY_AFTER = 1000;

/** How many runs are ended, or wait for their task, at the same time. */
const MAX_CONCURRENT = 256;

interface RunDeadlinesOptions extends RunParts {
  /** Called when a run has failed here because it timed out. */
  readonly failed?: (run: QueuedRun, task: LiveTask) => void;
  /**
   * Whether the service is on hold. During a hold, a run that is not being executed does not time out. Default: never.
   */
  readonly hold?: HoldView;
}

/** An entry for the next check of a run, unless a later entry replaces it. */
interface Deadline {
  /** On the steady clock. */
  readonly at: number;
  readonly run: QueuedRun;
  /** Its `timeout_seconds`; undefined while its task is not in memory. */
  readonly limit?: number;
  /** Whether the preferred worker has had its time. */
  readonly heldBack?: boolean;
}

/**
 * Ends waiting runs at their deadline: runs that have started before and wait for a key, a slot, the end of a wait or
 * their next attempt. A running run is ended by its execution. Each worker knows all deadlines and has one timer for
 * the next one. The append decides which worker ends a run.
 */
export class RunDeadlines {
  readonly #options: RunDeadlinesOptions;
  readonly #hold: HoldView;
  readonly #deadlines = new Map<string, Deadline>();
  readonly #heap = new Heap<Deadline>((one, other) => one.at < other.at);
  #cancelTimer: Cancel = () => {};
  #timerAt = Infinity;
  readonly #running = new Set<Promise<void>>();
  #stopped = false;

  constructor(options: RunDeadlinesOptions) {
    this.#options = options;
    this.#hold = options.hold ?? neverHeld;
    options.queue.subscribe({ onStarted: (run) => this.#update(run) });
  }

  /** Notes that the hold has started or ended. */
  holdChanged(): void {
    this.#setTimer();
  }

  /** Ends no more runs. Resolves when nothing is being written. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    await Promise.all(this.#running);
  }

  #update(run: QueuedRun): void {
    const { tasks, clock } = this.#options;
    this.#deadlines.delete(run.id);
    if (!isWaiting(run)) return;
    const task = tasks.peek(run.taskId, run.taskRevision);
    if (task !== undefined) {
      this.#arm(run, task);
      return;
    }
    // No back-off exceeds the deadline, and at the deadline the task is usually in memory.
    this.#schedule(run, Math.max(0, run.runAt - clock.now()));
  }

  #arm(run: QueuedRun, { definition }: LiveTask): void {
    const { clock } = this.#options;
    const limit = definition.timeout_seconds;
    if (limit === null || run.startedAt === null) return;
    // At most the whole limit, even if the clock was set back since the first start.
    const left = Math.min(run.startedAt + limit * 1000 - clock.now(), limit * 1000);
    this.#schedule(run, Math.max(0, left), { limit });
  }

  #schedule(
    run: QueuedRun,
    milliseconds: number,
    rest: Pick<Deadline, 'limit' | 'heldBack'> = {},
  ): void {
    const deadline = { at: this.#options.clock.steady() + milliseconds, run, ...rest };
    this.#deadlines.set(run.id, deadline);
    this.#heap.push(deadline);
    this.#setTimer();
  }

  #setTimer(): void {
    const next = this.#heap.peek();
    if (this.#stopped || this.#hold.held) return;
    if (next === undefined || next.at >= this.#timerAt) return;
    const { clock } = this.#options;
    this.#cancelTimer();
    this.#timerAt = next.at;
    this.#cancelTimer = clock.after(Math.max(0, next.at - clock.steady()), () => this.#wake());
  }

  #wake(): void {
    this.#timerAt = Infinity;
    if (this.#hold.held) return;
    const now = this.#options.clock.steady();
    while (this.#running.size < MAX_CONCURRENT) {
      const next = this.#heap.peek();
      if (next === undefined) break;
      const isCurrent = this.#deadlines.get(next.run.id) === next;
      if (isCurrent && next.at > now) break;
      this.#heap.pop();
      if (isCurrent) this.#begin(next);
    }
    // The others are started as these end.
    if (this.#running.size < MAX_CONCURRENT) this.#setTimer();
  }

  #begin(deadline: Deadline): void {
    const { run, limit } = deadline;
    this.#deadlines.delete(run.id);
    if (!isWaiting(run)) return;
    const { tasks, membership } = this.#options;
    if (limit === undefined) {
      const task = tasks.peek(run.taskId, run.taskRevision);
      if (task === undefined) this.#follow(deadline, this.#lookUp(run));
      else this.#arm(run, task);
      return;
    }
    const isDue = deadline.heldBack === true || isPreferred(() => run.id, membership);
    if (isDue) this.#follow(deadline, this.#end(run, limit));
    else this.#schedule(run, HOLD_BACK, { limit, heldBack: true });
  }

  #follow({ run, limit, heldBack = false }: Deadline, work: Promise<void>): void {
    const { failures } = this.#options.telemetry;
    const running = work.then(
      () => failures.worked(FAILURE),
      (error: unknown) => {
        failures.failed(FAILURE, error, { run: run.id });
        if (!isWaiting(run)) return;
        this.#schedule(run, RETRY_AFTER, limit === undefined ? {} : { limit, heldBack });
      },
    );
    this.#running.add(running);
    void running.then(() => {
      this.#running.delete(running);
      if (!this.#stopped) this.#wake();
    });
  }

  async #lookUp(run: QueuedRun): Promise<void> {
    const task = await this.#options.tasks.at(run.taskId, run.taskRevision);
    // The run may have ended or started a new wait in the meantime.
    if (isWaiting(run) && !this.#deadlines.has(run.id)) this.#arm(run, task);
  }

  async #end(run: QueuedRun, limit: number): Promise<void> {
    const { store, tasks, clock, membership, failed } = this.#options;
    const stream = streams.run(run.id);
    const task = await tasks.at(run.taskId, run.taskRevision);
    const { state, revision } = await load(store, stream, runFold);
    const ending = timeOutRun(state, limit, task.definition.payload as JsonObject);
    const end = ending.at(-1);
    if (end === undefined) return;
    const now = clock.now();
    const { id: correlationId, namespace } = run;
    const base = { actor: 'service', source: membership.id, correlationId, namespace, now };
    try {
      const events = toNewEvents(stream, ending, { ...base, commandId: newId(now) });
      await store.append(stream, events, revision);
    } catch (error) {
      // Another process has ended or continued it.
      if (isConflict(error)) return;
      throw error;
    }
    recordEnd(this.#options, end, toIso(run.startedAt ?? now));
    failed?.(run, task);
  }
}

/** Whether a run has started before and is not executed now. */
function isWaiting({ ended, state, startedAt }: QueuedRun): boolean {
  return !ended && state !== 'running' && startedAt !== null;
}
