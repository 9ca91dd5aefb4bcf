import type { Cancel, Instant } from '../../domain/clock.ts';
import { isConflict, type RecordedEvent } from '../../domain/event-store.ts';
import type { EventOf, RunEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { canceledEvent, deadlineOf, isResumed, type KnownRun } from '../../domain/runs/run.ts';
import { evolveWaits, noWaits, stopWaits, type Wait } from '../../domain/runs/run-waits.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Span } from '../../observability/telemetry.ts';
import { beginRun, failBy, traceEnd } from '../tracing.ts';
import { backOff, noteExecuted } from './run-backoff.ts';
import {
  endingEvents,
  endsUnstarted,
  isOutage,
  isRefusedData,
  permanentFailure,
  recordEnd,
} from './run-ending.ts';
import type { QueuedRun } from './queued-run.ts';
import { RunStart } from './run-start.ts';
import { foreignTypes, RunStream, type StreamOwner } from './run-stream.ts';
import type {
  AbortCause,
  Admission,
  HandOver,
  PipelineOutcome,
  PipelineRunner,
  RunParts,
  StartedRun,
  Work,
} from './run-work.ts';

/** Work that has not stopped this long after its signal is abandoned. Milliseconds. */
const STOP_TIMEOUT = 10_000;

/** How long a run that lost a race waits for the winner's event from the log. Milliseconds. */
const PAUSE_AFTER_LOST_RACE = 1000;

/** A run that is being executed. */
export interface RunHandle {
  /** Resolves when all events are written: to an instant if this queue should then retry the run. Never rejects. */
  readonly done: Promise<Instant | null>;
  abort(cause: AbortCause): void;
  /** An event of the run's stream, from any process. */
  onEvent(event: RecordedEvent): void;
}

export interface ExecutorOptions extends RunParts {
  readonly runPipeline: PipelineRunner;
  /** Checks the task's status, concurrency key and overlap. */
  readonly admit: (run: QueuedRun, task: LiveTask) => Admission | Promise<Admission>;
  /**
   * Whether a run's start may be written together with its end. Default: never.
   * @param resumed the run, if it continues after a wait
   */
  readonly startsWithEnd?: (run: QueuedRun, resumed: KnownRun | null) => boolean;
  /** An append for the same call as the end of a run. Default: none. */
  readonly handOver?: (run: QueuedRun, task: LiveTask, end: RunEvent) => HandOver | null;
  /** Called when the attempt is over here and its end is written. The run has ended, or continues. */
  readonly released: (run: QueuedRun, task: LiveTask) => void;
  /** Called when the run was admitted here, but another process has changed it. */
  readonly lost: (run: QueuedRun, task: LiveTask) => void;
  readonly random: () => number;
}

/** Executes runs: admit, start, execute, end. Each append expects the last known revision. */
export class RunExecutor {
  readonly options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    const { store, queue, tasks, membership, clock, telemetry, random } = options;
    const { runPipeline, admit, released, lost } = options;
    const { handOver = () => null, startsWithEnd = () => false } = options;
    const calls = { runPipeline, admit, startsWithEnd, handOver, released, lost };
    // Copied so that the objects of all executors, including those of a warm-up, have one hidden
    // class in V8.
    this.options = { store, queue, tasks, membership, clock, telemetry, random, ...calls };
  }

  /** @param freeSlot called once the run's end is on its way to the log */
  execute(run: QueuedRun, freeSlot: () => void): RunHandle {
    return new Execution(this.options, run, freeSlot, null);
  }

  /** Executes a run whose start is already in the log. */
  continue(run: QueuedRun, started: StartedRun): RunHandle {
    return new Execution(this.options, run, () => {}, started);
  }

  /**
   * The task of a run without a key, if it is in memory and active; otherwise null. Such a run can start at once.
   */
  taskToStartAtOnce(run: QueuedRun): LiveTask | null {
    const { tasks, telemetry } = this.options;
    if (telemetry.traces !== undefined || !tasks.isActive(run.taskId)) return null;
    return tasks.peek(run.taskId, run.taskRevision) ?? null;
  }
}

class Execution implements RunHandle, StreamOwner {
  readonly done: Promise<Instant | null>;
  draining = false;
  readonly #options: ExecutorOptions;
  readonly #run: QueuedRun;
  readonly #freeSlot: () => void;
  readonly #stop = new LazySignal();
  readonly #stream: RunStream;
  #cause: AbortCause | null = null;
  /** The pipeline has ended or was abandoned, so it may not record anything more. */
  #finished = false;
  #admitted: LiveTask | null = null;
  #span: Span | undefined;
  /** The waits as recorded. */
  #waits: readonly Wait[] = noWaits;
  #onResumed: (resumed: EventOf<'RunStepResumed'>) => void = () => {};
  #cancelTimers: Cancel[] = [];
  #abandon: () => void = () => {};

  constructor(
    options: ExecutorOptions,
    run: QueuedRun,
    freeSlot: () => void,
    started: StartedRun | null,
  ) {
    this.#options = options;
    this.#run = run;
    this.#stream = new RunStream(options, this, run);
    this.#freeSlot = freeSlot;
    this.done = this.#lead(started);
  }

  get traceparent(): string | undefined {
    return this.#span?.traceparent;
  }

  abort(cause: AbortCause): void {
    if (cause === 'drained') this.draining = true;
    if (this.#cause !== null) return;
    this.#cause = cause;
    this.#stop.abort(new Error(cause));
    this.#cancelTimers.push(this.#options.clock.after(STOP_TIMEOUT, () => this.#abandon()));
  }

  cancel(): void {
    this.abort('canceled');
  }

  resumed(event: EventOf<'RunStepResumed'>): void {
    this.#waits = evolveWaits(this.#waits, event);
    this.#onResumed(event);
  }

  onEvent(event: RecordedEvent): void {
    // Events of this process count too: another of its runs may cancel this one (overlap).
    if (foreignTypes.has(event.type)) {
      if (event.revision === this.#stream.revision + 1) this.#stream.revision = event.revision;
      if (event.type === 'RunStepResumed') this.resumed(event);
      else if (event.type === 'RunCancelRequested') this.abort('canceled');
    } else if (event.metadata.source !== this.#options.membership.id) {
      this.abort('fenced');
    }
  }

  async #lead(started: StartedRun | null): Promise<Instant | null> {
    const { telemetry, lost } = this.#options;
    try {
      if (started !== null) this.#admitted = started.task;
      const next = await (started === null
        ? this.#admitAndStart()
        : this.#executeAndEnd(started.task, null, started.start, started.beforeEnd));
      noteExecuted(this.#run, this.#options);
      return next;
    } catch (error) {
      if (this.#span !== undefined) failBy(this.#span, error);
      if (!isConflict(error)) return backOff(this.#run, error, this.#options);
      // The winner continues the run, and the log informs the queue.
      telemetry.count('worker_lost_races_total');
      if (this.#admitted !== null) lost(this.#run, this.#admitted);
      return await this.#refreshQueue();
    } finally {
      for (const cancel of this.#cancelTimers) cancel();
      this.#span?.end();
    }
  }

  async #admitAndStart(): Promise<Instant | null> {
    const { tasks, queue, admit, released, lost, store, telemetry, clock } = this.#options;
    const run = this.#run;
    const stream = this.#stream;
    const task =
      tasks.peek(run.taskId, run.taskRevision) ?? (await tasks.at(run.taskId, run.taskRevision));
    const admitting = admit(run, task);
    const admission = admitting instanceof Promise ? await admitting : admitting;
    this.#admitted = task;
    if (admission.kind === 'wait') return admission.until;
    if (admission.kind === 'end') {
      this.#freeSlot();
      const events = await this.#endsWith(admission.event, task);
      await stream.append({ events, now: clock.now() });
      released(run, task);
      return null;
    }
    const known = run.plain ? null : await stream.load();
    if (known !== null && known.revision !== stream.revision) {
      // The run has changed since it was admitted.
      queue.refresh(run, known);
      lost(run, task);
      return null;
    }
    const now = clock.now();
    const ends = known === null ? [] : endsUnstarted(known, task, now);
    if (ends.length > 0) {
      await stream.append({ events: ends, now });
      released(run, task);
      return null;
    }
    if (telemetry.traces) this.#span = await beginRun(telemetry.traces, store, run);
    const start = new RunStart(this.#options, run, clock.now(), known);
    if (!this.#startsWithEnd(known)) await start.write(stream);
    return this.#executeAndEnd(task, known, start);
  }

  /** A canceled run may already have ended or suspended steps. Its end holds their output. */
  async #endsWith(event: RunEvent, { definition }: LiveTask): Promise<readonly RunEvent[]> {
    if (event.type !== 'RunCanceled' || this.#run.attempt === 0) return [event];
    const known = await this.#stream.load();
    if (known === null) return [event];
    return [...stopWaits(known.waits), canceledEvent(known, definition.payload as JsonObject)];
  }

  /**
   * Only if the missing start makes no difference: the stream has only the request, or the run was left waiting and has
   * not lost a worker.
   */
  #startsWithEnd(known: KnownRun | null): boolean {
    if (this.#cause !== null || this.#span !== undefined) return false;
    const resumed = known !== null && isResumed(known) ? known : null;
    if (this.#stream.revision > 0 && resumed === null) return false;
    return this.#options.startsWithEnd?.(this.#run, resumed) === true;
  }

  async #executeAndEnd(
    task: LiveTask,
    known: KnownRun | null,
    start: RunStart,
    beforeEnd?: StartedRun['beforeEnd'],
  ): Promise<null> {
    const executing = this.#execute(task, known, start);
    const outcome = executing instanceof Promise ? await executing : executing;
    await beforeEnd?.();
    this.#freeSlot();
    await this.#end(task, known?.first_started_at ?? start.startedAt, start, outcome);
    this.#options.released(this.#run, task);
    return null;
  }

  /** @returns the outcome of the pipeline; at once if the pipeline answers at once */
  #execute(
    task: LiveTask,
    known: KnownRun | null,
    start: RunStart,
  ): PipelineOutcome | Promise<PipelineOutcome> {
    const { clock } = this.#options;
    const record: Work['record'] = async (events) => {
      await start.write(this.#stream);
      if (this.#finished) throw this.#stream.lostRace();
      await this.#stream.append({ events, now: clock.now() });
      this.#waits = events.reduce(evolveWaits, this.#waits);
    };
    const onResumed: Work['onResumed'] = (listener) => (this.#onResumed = listener);
    if (known !== null) this.#waits = known.waits;
    this.#limitTime(task, known, start);
    const { attempt } = start;
    const about = { run: this.#run, task, known, attempt, span: this.#span, record, onResumed };
    const outcome = this.#runPipeline({ ...about, stop: this.#stop });
    if (outcome instanceof Promise) return this.#waitFor(outcome, start);
    this.#finished = true;
    return outcome;
  }

  /** Aborts the run at its deadline, if its task has a timeout. */
  #limitTime(task: LiveTask, known: KnownRun | null, start: RunStart): void {
    const limit = task.definition.timeout_seconds;
    if (limit === null) return;
    const { clock } = this.#options;
    const firstStart = Date.parse(known?.first_started_at ?? start.startedAt);
    const deadline = (known && deadlineOf(known, limit)) ?? firstStart + limit * 1000;
    // If the clock was set back since the first start, at most the whole limit.
    const left = Math.min(deadline - clock.now(), limit * 1000);
    if (left <= 0) this.abort('timeout');
    else this.#cancelTimers.push(clock.after(left, () => this.abort('timeout')));
  }

  /** Waits for work that takes time; its start is written first. */
  async #waitFor(work: Promise<PipelineOutcome>, start: RunStart): Promise<PipelineOutcome> {
    // Nobody awaits the work if the start cannot be written.
    work.catch(() => {});
    try {
      await start.write(this.#stream);
      return await new Promise<PipelineOutcome>((resolve, reject) => {
        this.#abandon = () => resolve({ kind: 'aborted', steps: [], output: {} });
        work.then(resolve, reject);
      });
    } finally {
      this.#finished = true;
    }
  }

  /** An unexpected error fails the run; otherwise the run would be retried without end. */
  #runPipeline(work: Work): PipelineOutcome | Promise<PipelineOutcome> {
    const failed = (error: unknown): PipelineOutcome => {
      if (isOutage(error)) throw error;
      this.#options.telemetry.log.error('executing a run failed', { run: this.#run.id, error });
      const why = error instanceof Error ? error.message : String(error);
      return permanentFailure(`could not be executed: ${why}`);
    };
    try {
      const outcome = this.#options.runPipeline(work);
      return outcome instanceof Promise ? outcome.catch(failed) : outcome;
    } catch (error) {
      return failed(error);
    }
  }

  async #end(
    task: LiveTask,
    startedAt: string,
    start: RunStart,
    outcome: PipelineOutcome,
  ): Promise<void> {
    const { membership, clock, random, handOver } = this.#options;
    const { taskId } = this.#run;
    const { attempt } = start;
    const endsOf = (of: PipelineOutcome, cause = this.#cause): readonly RunEvent[] => {
      const about = { startedAt, attempt, taskId, worker: membership.id, clock, random };
      return start.withEnd(endingEvents(task, of, cause, { ...about, waits: this.#waits }));
    };
    const cause = this.#cause;
    let events = endsOf(outcome);
    const last = events.at(-1);
    if (last === undefined) return;
    const started = start.isWritten ? undefined : start.at;
    const along = handOver?.(this.#run, task, last);
    // A cancellation ends a run that would otherwise wait. It does not replace another end.
    const waits = last.type === 'RunAttemptFailed' || last.type === 'RunReleased';
    const again = (): readonly RunEvent[] => endsOf(outcome, waits ? this.#cause : cause);
    try {
      const writing = { events, now: clock.now(), started, handOver: along, again };
      events = await this.#stream.append(writing);
    } catch (error) {
      if (!isRefusedData(error)) throw error;
      events = endsOf(permanentFailure(`its end could not be recorded: ${error.message}`));
      await this.#stream.append({ events, now: clock.now(), started });
    }
    start.written();
    const end = events.at(-1);
    if (end === undefined) return;
    recordEnd(this.#options, end, startedAt);
    if (this.#span !== undefined) traceEnd(this.#span, end);
  }

  /** After a lost race: reads the events that the queue has not seen yet. @returns when the run may be tried again */
  async #refreshQueue(): Promise<Instant> {
    const { queue, clock } = this.#options;
    try {
      const known = await this.#stream.load();
      if (known !== null) queue.refresh(this.#run, known);
      return clock.now() + PAUSE_AFTER_LOST_RACE;
    } catch (error) {
      return backOff(this.#run, error, this.#options);
    }
  }
}

/**
 * An abort signal that is created on first use. Creating one costs as much as the rest of a short run's bookkeeping, and
 * most short runs never use it.
 */
class LazySignal {
  #controller: AbortController | null = null;
  #reason: Error | null = null;

  /** The same signal each time. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== null) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#reason !== null;
  }

  /** Only the first reason counts. */
  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
