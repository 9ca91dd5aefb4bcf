import { toIso, type Cancel, type Clock, type Instant } from '../../domain/clock.ts';
import { isConflict, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { canceled, deadlineOf, startRun, type KnownRun } from '../../domain/runs/run.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Span, Telemetry } from '../../observability/telemetry.ts';
import { LateSignal } from './late-signal.ts';
import type { Membership } from '../processes/membership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { putOff } from './run-faults.ts';
import { endingEvents, endsUnstarted } from './run-ending.ts';
import { failedOutright, isOutage, isRefusedData, tellEnd } from './run-outcome.ts';
import type { QueuedRun, RunQueue } from './run-queue.ts';
import { RunStream, type StreamOwner } from './run-stream.ts';
import type {
  AbortCause,
  Admission,
  Begun,
  HandOver,
  PipelineOutcome,
  PipelineRunner,
  Work,
} from './run-work.ts';
import { StoppableWork } from './stoppable-work.ts';
import { beginRun, failBy, traceEnd } from '../tracing.ts';

/** What does not stop in this time after it was told to is given up. Milliseconds. */
const GIVE_UP = 10_000;

/** A run that is being executed. */
export interface RunHandle {
  /** Resolves when all is written; to an instant when the run is to be tried again by this queue. Never rejects. */
  readonly done: Promise<Instant | null>;
  abort(cause: AbortCause): void;
  /** An event of the run's stream, this process's own included. */
  onEvent(event: RecordedEvent): void;
}

export interface ExecutorOptions {
  readonly store: EventStore;
  readonly queue: RunQueue;
  readonly tasks: PinnedTasks;
  readonly membership: Membership;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly runPipeline: PipelineRunner;
  /** Pause, keys of concurrency and overlap. */
  readonly admit: (run: QueuedRun, task: LiveTask) => Admission | Promise<Admission>;
  /** Whether a run may be executed before its start is written, to be written with the end. Default: none may. */
  readonly startsWithEnd?: (run: QueuedRun) => boolean;
  /** What is to be appended right behind the end of a run; default: nothing. */
  readonly handOver?: (run: QueuedRun, task: LiveTask, end: RunEvent) => HandOver | null;
  /**
   * The work on a run is over here, and what there was to write is written. Whether it has ended, is to be tried
   * again, or goes on elsewhere, the run itself says.
   */
  readonly released: (run: QueuedRun, task: LiveTask) => void;
  /** The run was admitted here, and somebody else has moved it on. */
  readonly lost: (run: QueuedRun, task: LiveTask) => void;
  readonly random: () => number;
}

/** Leads runs through their steps: admit, start, execute, end. Each append expects what was last known. */
export class RunExecutor {
  readonly options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    const { store, queue, tasks, membership, clock, telemetry, random } = options;
    const { runPipeline, admit, released, lost } = options;
    const { handOver = () => null, startsWithEnd = () => false } = options;
    const calls = { runPipeline, admit, startsWithEnd, handOver, released, lost };
    // Written out: of one form for all executors, a rehearsal's too, or what V8 has compiled for one is of no use to others.
    this.options = { store, queue, tasks, membership, clock, telemetry, random, ...calls };
  }

  /** @param freeSlot called once the run's end is on its way to the log */
  execute(run: QueuedRun, freeSlot: () => void): RunHandle {
    return new Execution(this.options, run, freeSlot, null);
  }

  /**
   * The task of a run that may begin at once, as far as is known here; null where something would have to be looked up
   * first, or keeps it. Asked only of runs that need no key.
   */
  admitsAtOnce(run: QueuedRun): LiveTask | null {
    const { tasks, telemetry } = this.options;
    if (telemetry.traces !== undefined || !tasks.isActive(run.taskId)) return null;
    return tasks.peek(run.taskId, run.taskRevision) ?? null;
  }

  /** Goes on with a run whose start stands in the log: it was admitted, and written together with the request. */
  goOn(run: QueuedRun, begun: Begun): RunHandle {
    return new Execution(this.options, run, () => {}, begun);
  }
}

/** The start of an attempt. */
interface Start {
  readonly event: ReturnType<typeof startRun>;
  readonly at: Instant;
}

class Execution implements RunHandle, StreamOwner {
  readonly done: Promise<Instant | null>;
  /** Whatever stopped the work before. */
  draining = false;
  private readonly options: ExecutorOptions;
  private readonly run: QueuedRun;
  private readonly freeSlot: () => void;
  private readonly stop = new LateSignal();
  private readonly stream: RunStream;
  private cause: AbortCause | null = null;
  /** The start that is to be written with the end, or before anything else is; null: it stands in the log. */
  private unwritten: Start | null = null;
  private starting: Promise<void> | null = null;
  /** The pipeline has ended, or was given up: it records nothing more. */
  private over = false;
  private admitted: LiveTask | null = null;
  /** Of this attempt; none where traces are off. */
  private span: Span | undefined;
  private cancelTimers: Cancel[] = [];
  private giveUp: () => void = () => {};

  constructor(options: ExecutorOptions, run: QueuedRun, freeSlot: () => void, begun: Begun | null) {
    this.options = options;
    this.run = run;
    this.stream = new RunStream(options, this, run, begun?.revision ?? run.revision);
    this.freeSlot = freeSlot;
    this.done = this.lead(begun);
  }

  get traceparent(): string | undefined {
    return this.span?.traceparent;
  }

  abort(cause: AbortCause): void {
    if (cause === 'drained') this.draining = true;
    if (this.cause !== null) return;
    this.cause = cause;
    this.stop.abort(new Error(cause));
    // What was told to stop and does not is left to itself: whatever it still says is refused.
    const { clock } = this.options;
    this.cancelTimers.push(clock.after(GIVE_UP, () => this.giveUp()));
  }

  cancel(): void {
    this.abort('canceled');
  }

  onEvent(event: RecordedEvent): void {
    // Also from this process: an overlapping run of its own may want this one's place.
    if (event.type === 'RunCancelRequested') {
      const { stream } = this;
      if (event.revision === stream.revision + 1) stream.revision = event.revision;
      this.abort('canceled');
    } else if (event.metadata.source !== this.options.membership.id) {
      this.abort('fenced');
    }
  }

  private async lead(begun: Begun | null): Promise<Instant | null> {
    const { clock, telemetry } = this.options;
    try {
      if (begun === null) return await this.steps();
      const { task, startedAt, ready } = begun;
      this.admitted = task;
      return await this.finish(task, null, startedAt, this.run.attempt, ready);
    } catch (error) {
      if (this.span !== undefined) failBy(this.span, error);
      // A lost race: whoever won goes on with it, and the log tells the queue.
      if (isConflict(error)) {
        telemetry.count('worker_lost_races_total');
        if (this.admitted !== null) this.options.lost(this.run, this.admitted);
        await this.lookAgain();
        return clock.now() + 1000;
      }
      return putOff(this.run, error, this.options);
    } finally {
      for (const cancel of this.cancelTimers) cancel();
      this.span?.end();
    }
  }

  private async steps(): Promise<Instant | null> {
    const { tasks, queue, admit, released, lost, store, telemetry, clock } = this.options;
    const { run, stream } = this;
    const task =
      tasks.peek(run.taskId, run.taskRevision) ?? (await tasks.at(run.taskId, run.taskRevision));
    const asked = admit(run, task);
    const admission = asked instanceof Promise ? await asked : asked;
    this.admitted = task;
    if (admission.kind === 'wait') return admission.until;
    if (admission.kind === 'end') {
      this.freeSlot();
      const events = [await this.endOf(admission.event, task)];
      await stream.append({ events, now: clock.now() });
      released(run, task);
      return null;
    }
    const known = run.plain ? null : await stream.load();
    // Whatever has happened since, it was not known when the run was admitted.
    if (known !== null && known.revision !== stream.revision) {
      queue.refresh(run, known);
      lost(run, task);
      return null;
    }
    const now = clock.now();
    const events = known === null ? [] : endsUnstarted(known, task, now);
    if (events.length > 0) {
      await stream.append({ events, now });
      released(run, task);
      return null;
    }
    if (telemetry.traces) this.span = await beginRun(telemetry.traces, store, run);
    const start = this.start(known);
    this.unwritten = start;
    if (!this.isToStartWithEnd()) await this.writeStart();
    return this.finish(task, known, toIso(start.at), start.event.data.attempt);
  }

  /** A run that is not admitted any more may have ended steps before: its end says where their results stand. */
  private async endOf(event: RunEvent, { definition }: LiveTask): Promise<RunEvent> {
    if (event.type !== 'RunCanceled' || this.run.attempt === 0) return event;
    const known = await this.stream.load();
    return known === null ? event : canceled(known, definition.payload as JsonObject);
  }

  private start(known: KnownRun | null): Start {
    const { clock, membership } = this.options;
    const at = clock.now();
    return { event: startRun(known ?? this.run, membership.id, at + membership.lease), at };
  }

  /** Only where nothing else has ever happened to the run, so that a start that never came into the log changed nothing. */
  private isToStartWithEnd(): boolean {
    const { options, run, stream, cause, span } = this;
    if (stream.revision > 0 || cause !== null || span !== undefined) return false;
    return options.startsWithEnd?.(run) === true;
  }

  /** Where that is still to be done. */
  private writeStart(): Promise<void> {
    this.starting ??= this.appendStart();
    return this.starting;
  }

  private async appendStart(): Promise<void> {
    if (this.unwritten === null) return;
    const { event, at } = this.unwritten;
    await this.stream.append({ events: [event], now: at });
    this.unwritten = null;
    this.tellStart(at);
  }

  private tellStart(at: Instant): void {
    const lateness = Math.max(0, at - this.run.runAt) / 1000;
    this.options.telemetry.observe('run_start_lateness_seconds', lateness);
  }

  private async finish(
    task: LiveTask,
    known: KnownRun | null,
    startedAt: string,
    attempt: number,
    ready?: Begun['ready'],
  ): Promise<null> {
    const executing = this.execute(task, known, startedAt, attempt);
    const outcome = executing instanceof Promise ? await executing : executing;
    await ready?.();
    this.freeSlot();
    await this.end(task, known?.first_started_at ?? startedAt, attempt, outcome);
    this.options.released(this.run, task);
    return null;
  }

  /** @returns how the pipeline came out; at once where it answers at once */
  private execute(
    task: LiveTask,
    known: KnownRun | null,
    startedAt: string,
    attempt: number,
  ): PipelineOutcome | Promise<PipelineOutcome> {
    const { run, span } = this;
    const record: Work['record'] = async (steps) => {
      await this.writeStart();
      if (this.over) throw this.stream.lostRace();
      const events = steps.map((data) => ({ type: 'RunStepCompleted', data }) as const);
      await this.stream.append({ events, now: this.options.clock.now() });
    };
    this.limit(task, known, startedAt);
    const about = { run, task, known, attempt, span, record };
    const outcome = this.guarded(new StoppableWork(about, this.stop));
    if (outcome instanceof Promise) return this.patiently(outcome);
    this.over = true;
    return outcome;
  }

  /** Sees to it that the run is over in time, where its task says by when. */
  private limit(task: LiveTask, known: KnownRun | null, startedAt: string): void {
    const limit = task.definition.timeout_seconds;
    if (limit === null) return;
    const { clock } = this.options;
    const from = known?.first_started_at ?? startedAt;
    const deadline = known === null ? Date.parse(from) + limit * 1000 : deadlineOf(known, limit);
    const at = deadline ?? Date.parse(from) + limit * 1000;
    // However the clock is set from now on; where it was put back since the first start, no more than the whole.
    const left = Math.min(at - clock.now(), limit * 1000);
    // It may have passed as the start was written.
    if (left <= 0) this.abort('timeout');
    else this.cancelTimers.push(clock.after(left, () => this.abort('timeout')));
  }

  /** What takes time has started in the log before it is waited for. */
  private async patiently(work: Promise<PipelineOutcome>): Promise<PipelineOutcome> {
    // Where the start can't be written nobody waits for it.
    work.catch(() => {});
    try {
      await this.writeStart();
      return await new Promise<PipelineOutcome>((resolve, reject) => {
        this.giveUp = () => resolve({ kind: 'aborted', steps: [], output: {} });
        work.then(resolve, reject);
      });
    } finally {
      this.over = true;
    }
  }

  /** A fault of the execution itself ends the run: without that, it would be taken up again and again. */
  private guarded(work: Work): PipelineOutcome | Promise<PipelineOutcome> {
    const failed = (error: unknown): PipelineOutcome => {
      if (isOutage(error)) throw error;
      this.options.telemetry.log.error('executing a run has failed', { run: this.run.id, error });
      const message = `could not be executed: ${error instanceof Error ? error.message : String(error)}`;
      return failedOutright(message);
    };
    try {
      const outcome = this.options.runPipeline(work);
      return outcome instanceof Promise ? outcome.catch(failed) : outcome;
    } catch (error) {
      return failed(error);
    }
  }

  private async end(
    task: LiveTask,
    startedAt: string,
    attempt: number,
    outcome: PipelineOutcome,
  ): Promise<void> {
    const { membership, clock, random } = this.options;
    const { stream, unwritten } = this;
    const { taskId } = this.run;
    const worker = membership.id;
    const at = { startedAt, attempt, taskId, worker, clock, random };
    const ending = (of: PipelineOutcome): readonly RunEvent[] => {
      const ends = endingEvents(task, of, this.cause, at);
      return unwritten === null || ends.length === 0 ? ends : [unwritten.event, ...ends];
    };
    let events = ending(outcome);
    if (events.length === 0) return;
    const [end] = events.slice(-1);
    const handOver = end && this.options.handOver?.(this.run, task, end);
    const begun = unwritten?.at;
    const ifCanceled = (): readonly RunEvent[] => ending(outcome);
    try {
      events = await stream.append({ events, now: clock.now(), begun, handOver, ifCanceled });
    } catch (error) {
      if (!isRefusedData(error)) throw error;
      events = ending(failedOutright(`its end could not be recorded: ${error.message}`));
      await stream.append({ events, now: clock.now(), begun });
    }
    if (unwritten !== null) this.tellStart(unwritten.at);
    const last = events.at(-1);
    if (!last) return;
    tellEnd(this.options, last, startedAt);
    if (this.span !== undefined) traceEnd(this.span, last);
  }

  /** After a lost race: what the queue has not heard of yet. */
  private async lookAgain(): Promise<void> {
    const { queue, telemetry } = this.options;
    try {
      const known = await this.stream.load();
      if (known !== null) queue.refresh(this.run, known);
    } catch (error) {
      telemetry.log.warn('a run could not be looked at again', { run: this.run.id, error });
    }
  }
}
