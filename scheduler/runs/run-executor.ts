import { toIso, type Cancel, type Clock, type Instant } from '../../domain/clock.ts';
import {
  EventStoreError,
  isConflict,
  type EventStore,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { load, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { canceled, deadlineOf, runFold, startRun, type KnownRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Span, Telemetry } from '../../observability/telemetry.ts';
import { LateSignal } from './late-signal.ts';
import type { Membership } from '../processes/membership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { putOff } from './run-faults.ts';
import { endingEvents } from './run-ending.ts';
import { failedOutright, isPassing, isRefusedData, tellEnd } from './run-outcome.ts';
import type { QueuedRun, RunQueue } from './run-queue.ts';
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

/** Pauses between attempts to write what a run has to say while the log is away. Milliseconds. */
const WRITE_PAUSES = [50, 100, 200, 500, 1000] as const;

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
    const { runPipeline, admit, handOver = () => null, released, lost } = options;
    const calls = { runPipeline, admit, handOver, released, lost };
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

class Execution implements RunHandle {
  readonly done: Promise<Instant | null>;
  private readonly options: ExecutorOptions;
  private readonly run: QueuedRun;
  private readonly freeSlot: () => void;
  private readonly stop = new LateSignal();
  private cause: AbortCause | null = null;
  /** The process is about to end, whatever stopped the work before. */
  private draining = false;
  /**
   * Of the last event that this execution knows of. Not the queue's, which also follows what others do: by that,
   * a worker whose run was taken from it could still append.
   */
  private revision: number;
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
    this.revision = begun?.revision ?? run.revision;
    this.freeSlot = freeSlot;
    this.done = this.lead(begun);
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

  onEvent(event: RecordedEvent): void {
    // Also from this process: an overlapping run of its own may want this one's place.
    if (event.type === 'RunCancelRequested') {
      if (event.revision === this.revision + 1) this.revision = event.revision;
      this.abort('canceled');
    } else if (event.metadata.source !== this.options.membership.id) {
      this.abort('fenced');
    }
  }

  private async lead(begun: Begun | null): Promise<Instant | null> {
    const { clock, telemetry } = this.options;
    try {
      if (begun === null) return await this.steps();
      this.admitted = begun.task;
      return await this.finish(begun.task, null, begun.startedAt, begun.ready);
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
    const { tasks, queue, admit, released, lost, store, telemetry } = this.options;
    const { run } = this;
    const task =
      tasks.peek(run.taskId, run.taskRevision) ?? (await tasks.at(run.taskId, run.taskRevision));
    const admission = await admit(run, task);
    this.admitted = task;
    if (admission.kind === 'wait') return admission.until;
    if (admission.kind === 'end') {
      this.freeSlot();
      await this.append([await this.endOf(admission.event, task)]);
      released(run, task);
      return null;
    }
    const known = run.plain ? null : await this.loadKnown();
    // Whatever has happened since, it was not known when the run was admitted.
    if (known !== null && known.revision !== this.revision) {
      queue.refresh(run, known);
      lost(run, task);
      return null;
    }
    if (known?.cancel_requested) {
      await this.append([canceled(known, task.definition.payload as JsonObject)]);
      released(run, task);
      return null;
    }
    if (telemetry.traces) this.span = await beginRun(telemetry.traces, store, run);
    return this.finish(task, known, await this.begin(run, known));
  }

  /** A run that is not admitted any more may have ended steps before: its end says where their results stand. */
  private async endOf(event: RunEvent, { definition }: LiveTask): Promise<RunEvent> {
    if (event.type !== 'RunCanceled' || this.run.attempt === 0) return event;
    const known = await this.loadKnown();
    return known === null ? event : canceled(known, definition.payload as JsonObject);
  }

  private async finish(
    task: LiveTask,
    known: KnownRun | null,
    startedAt: string,
    ready?: Begun['ready'],
  ): Promise<null> {
    const outcome = await this.execute(task, known, startedAt);
    await ready?.();
    this.freeSlot();
    await this.end(task, known?.first_started_at ?? startedAt, outcome);
    this.options.released(this.run, task);
    return null;
  }

  /** @returns when this start happened */
  private async begin(run: QueuedRun, known: KnownRun | null): Promise<string> {
    const { clock, membership, telemetry } = this.options;
    const now = clock.now();
    await this.append([startRun(known ?? run, membership.id, now + membership.lease)], now);
    telemetry.observe('run_start_lateness_seconds', Math.max(0, now - run.runAt) / 1000);
    return toIso(now);
  }

  private async execute(
    task: LiveTask,
    known: KnownRun | null,
    startedAt: string,
  ): Promise<PipelineOutcome> {
    const { run } = this;
    const { runPipeline, clock } = this.options;
    const limit = task.definition.timeout_seconds;
    if (limit !== null) {
      const from = known?.first_started_at ?? startedAt;
      const deadline = known === null ? Date.parse(from) + limit * 1000 : deadlineOf(known, limit);
      const at = deadline ?? Date.parse(from) + limit * 1000;
      // However the clock is set from now on; where it was put back since the first start, no more than the whole.
      const left = Math.min(at - clock.now(), limit * 1000);
      // A back-off may have outlasted it.
      if (left <= 0) this.abort('timeout');
      else this.cancelTimers.push(clock.after(left, () => this.abort('timeout')));
    }
    const record: Work['record'] = async (steps) => {
      if (this.over) throw this.lostRace();
      await this.append(steps.map((data) => ({ type: 'RunStepCompleted', data })));
    };
    const { attempt } = run;
    const about = { run, task, known, attempt, span: this.span, record };
    const work = this.guarded(runPipeline, new StoppableWork(about, this.stop));
    try {
      return await new Promise<PipelineOutcome>((resolve, reject) => {
        this.giveUp = () => resolve({ kind: 'aborted', steps: [], output: {} });
        work.then(resolve, reject);
      });
    } finally {
      this.over = true;
    }
  }

  /** A fault of the execution itself ends the run: without that, it would be taken up again and again. */
  private async guarded(runPipeline: PipelineRunner, work: Work): Promise<PipelineOutcome> {
    try {
      return await runPipeline(work);
    } catch (error) {
      if (error instanceof EventStoreError && !isRefusedData(error)) throw error;
      this.options.telemetry.log.error('executing a run has failed', { run: this.run.id, error });
      const message = `could not be executed: ${error instanceof Error ? error.message : String(error)}`;
      return failedOutright(message);
    }
  }

  private lostRace(): EventStoreError {
    const stream = streams.run(this.run.id);
    return new EventStoreError('CONFLICT', 'the run is no longer worked on here', { stream });
  }

  private async end(task: LiveTask, startedAt: string, outcome: PipelineOutcome): Promise<void> {
    const { membership, clock, random } = this.options;
    const { attempt, taskId } = this.run;
    const worker = membership.id;
    const at = { startedAt, attempt, taskId, worker, clock, random };
    let events = endingEvents(task, outcome, this.cause, at);
    if (events.length === 0) return;
    const [end] = events.slice(-1);
    const handOver = end && this.options.handOver?.(this.run, task, end);
    try {
      events = await this.append(events, undefined, handOver, () =>
        endingEvents(task, outcome, this.cause, at),
      );
    } catch (error) {
      if (!isRefusedData(error)) throw error;
      const message = `its end could not be recorded: ${error.message}`;
      events = endingEvents(task, failedOutright(message), this.cause, at);
      await this.append(events);
    }
    const last = events.at(-1);
    if (!last) return;
    tellEnd(this.options, last, startedAt);
    if (this.span !== undefined) traceEnd(this.span, last);
  }

  /** After a lost race: what the queue has not heard of yet. */
  private async lookAgain(): Promise<void> {
    const { queue, telemetry } = this.options;
    try {
      const known = await this.loadKnown();
      if (known !== null) queue.refresh(this.run, known);
    } catch (error) {
      telemetry.log.warn('a run could not be looked at again', { run: this.run.id, error });
    }
  }

  private async loadKnown(): Promise<KnownRun | null> {
    const { state } = await load(this.options.store, streams.run(this.run.id), runFold);
    return 'request' in state ? state : null;
  }

  /**
   * Appends with the revision that is known here. While the log is away it tries again for as long as this
   * worker counts as alive. A conflict with nothing but a request to cancel is no loss: the run is still ours.
   * @param handOver what goes along behind them; it is tried once
   * @param ifCanceled what is to be written where they would have the run wait for an attempt that is not wanted any more
   * @returns what was written
   */
  private async append(
    events: readonly RunEvent[],
    now = this.options.clock.now(),
    handOver?: HandOver | null,
    ifCanceled?: () => readonly RunEvent[],
  ): Promise<readonly RunEvent[]> {
    const { store, queue, membership, clock } = this.options;
    const { run } = this;
    const stream = streams.run(run.id);
    const [source, traceparent] = [membership.id, this.span?.traceparent];
    const commandId = newId(now);
    const by = { commandId, actor: 'service', source, correlationId: run.id, traceparent, now };
    let newEvents = toNewEvents(stream, events, by);
    let along = handOver ?? null;
    for (let attempt = 0; ; attempt += 1) {
      try {
        const own = { stream, events: newEvents, expected: this.revision };
        const [result, behind] =
          along === null
            ? [await store.append(stream, newEvents, this.revision)]
            : await store.appendInOrder([own, along.append]);
        if (result === undefined) throw this.lostRace();
        this.revision = result.revision;
        let revision = result.revision - events.length;
        for (const event of events) queue.applied(run, event, (revision += 1));
        if (behind === undefined) along?.failed();
        else along?.done(behind);
        return events;
      } catch (error) {
        const wasAlone = along === null;
        along?.failed();
        along = null;
        const isOurs = isPassing(error) || (isConflict(error) && error.stream === stream);
        // The one behind was refused, and these may stand in the log: alone, they say so.
        if (!wasAlone && !isOurs) continue;
        if (isConflict(error)) {
          this.revision = await this.stillOurs(error);
          if (!ifCanceled || events.at(-1)?.type !== 'RunAttemptFailed') continue;
          events = ifCanceled();
          newEvents = toNewEvents(stream, events, { ...by, commandId: newId(now) });
        } else if (!isPassing(error) || !membership.alive) throw error;
        // Who comes after this process finds out.
        else if (this.draining && attempt >= WRITE_PAUSES.length) throw error;
        else await clock.sleep(WRITE_PAUSES[Math.min(attempt, WRITE_PAUSES.length - 1)] ?? 1000);
      }
    }
  }

  /** @returns the revision to expect now; throws the conflict when the run is somebody else's */
  private async stillOurs(conflict: Error): Promise<number> {
    const known = await this.loadKnown();
    const ours =
      known?.state === 'running' &&
      known.lease_owner === this.options.membership.id &&
      known.attempt === this.run.attempt &&
      known.cancel_requested;
    if (!ours) throw conflict;
    this.abort('canceled');
    return known.revision;
  }
}
