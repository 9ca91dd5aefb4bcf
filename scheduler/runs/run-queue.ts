import { fromIso, toIso, type Clock, type Instant } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf, RunEvent } from '../../domain/events/catalogue.ts';
import { hasEnded, type KnownRun } from '../../domain/runs/run.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { evolveSlimWaits, mayContinue, noWaits, type Wait } from '../../domain/runs/run-waits.ts';
import { unfinishedRunStates } from '../../domain/vocabulary.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { loadView, type ReadableViews } from '../../projections/reading/load-view.ts';
import { ReachedPosition } from '../../projections/reading/reached-position.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import { FairQueue, type Party } from '../fairness/fair-queue.ts';
import { Heap } from '../heap.ts';
import {
  fromDocument,
  fromRequest,
  goesBefore,
  isWaiting,
  mayStart,
  partyOf,
  type QueuedRun,
  type RunQueueListener,
} from './queued-run.ts';
import { UnfinishedRuns } from './unfinished-runs.ts';

/** How many streams are read in parallel. */
const CONCURRENT_READS = 32;

/** The revision of a run that is not in the log yet. */
const NOT_WRITTEN = -1;

/**
 * All unfinished runs, in memory: the runs view, loaded once and followed live. Appends expect the revision found here,
 * so a stale entry costs a lost race.
 */
export class RunQueue {
  /** Runs that may start now. `pop` and `hold` act on the run that `peek` last returned. */
  readonly ready: FairQueue<QueuedRun>;
  readonly #store: EventStore;
  readonly #readModel: ReadableViews;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #runs = new UnfinishedRuns();
  readonly #later = new Heap<{ at: Instant; run: QueuedRun }>((a, b) => a.at < b.at);
  readonly #listeners: RunQueueListener[] = [];
  readonly #startsRuns: boolean;
  readonly #reached = new ReachedPosition();
  /** False until the end of the log is reached. Before that, ended runs may seem unfinished. */
  #current = false;
  #turns = 0;

  /**
   * @param startsRuns whether this process starts runs, which must then be ordered
   * @param weightOf a namespace's share of the starts, 1 or more. Default: 1 for each
   */
  constructor(
    store: EventStore,
    readModel: ReadableViews,
    clock: Clock,
    telemetry: Telemetry,
    startsRuns = true,
    weightOf?: (namespace: string) => number,
  ) {
    this.ready = new FairQueue({ before: goesBefore, partyOf, isLive: isWaiting, weightOf });
    this.#startsRuns = startsRuns;
    this.#store = store;
    this.#readModel = readModel;
    this.#clock = clock;
    this.#telemetry = telemetry;
  }

  subscribe(listener: RunQueueListener): void {
    this.#listeners.push(listener);
  }

  /** Tells the worker that runs may be ready to start. */
  notifyReady(): void {
    for (const { onReady } of this.#listeners) onReady?.();
  }

  get size(): number {
    return this.#runs.size;
  }

  /** How many unfinished runs an agent and its namespace have. */
  countOf(party: Party): ReturnType<UnfinishedRuns['countOf']> {
    return this.#runs.countOf(party);
  }

  /** How many runs are not running. An upper bound, because stale entries count too. */
  get waiting(): number {
    return this.ready.size + this.#later.size;
  }

  /** Whether the end of the log was reached, so that the queue holds exactly the unfinished runs. */
  get isCurrent(): boolean {
    return this.#current;
  }

  /** The position up to which this queue has followed the log, if the queue is current. */
  get position(): Position {
    return this.#reached.position;
  }

  /** Resolves once the queue is current and has passed a position. Rejects when the signal is aborted. */
  passed(position: Position, signal: AbortSignal): Promise<void> {
    return this.#reached.passed(position, signal);
  }

  get(id: string): QueuedRun | undefined {
    return this.#runs.get(id);
  }

  all(): IterableIterator<QueuedRun> {
    return this.#runs.values();
  }

  /**
   * Loads the unfinished runs, then follows the log until the signal is aborted.
   * @param ready called at the end of the log
   */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    this.#current = false;
    this.#reached.restart();
    // After an interruption, known runs may have ended. Those that this process executes stay.
    for (const run of [...this.#runs.values()].filter(({ taken }) => !taken)) {
      run.ended = true;
      this.#runs.delete(run);
    }
    const unfinished = { field: 'state', op: 'in', value: unfinishedRunStates } as const;
    const after = await loadView(
      { store: this.#store, readModel: this.#readModel },
      runsProjection,
      [unfinished],
      (document) => this.#add(fromDocument(document, this.#turn())),
    );
    await this.#catchUpTaken();
    for await (const message of this.#store.subscribe({ after, prefixes: ['run-'], signal })) {
      if (message.kind === 'events') {
        for (const event of message.events) this.#take(event);
        // Before the end of the log, queued runs may already have been taken by a worker.
        if (!this.#current) continue;
        const last = message.events.at(-1);
        if (last !== undefined) this.#reached.reach(last.position);
        this.notifyReady();
        continue;
      }
      if (!this.#current) {
        this.#current = true;
        for (const run of this.#runs.values()) {
          this.#enqueue(run);
          this.#notifyWaits(run);
        }
        ready();
        this.notifyReady();
      }
      this.#reached.reach(message.position);
    }
  }

  /**
   * The run whose turn it is to start now, by the turns of namespaces and agents, then by priority and age.
   *
   * @returns null if no run may start now
   */
  peek(now: Instant): QueuedRun | null {
    for (let top = this.#later.peek(); top && top.at <= now; top = this.#later.peek()) {
      this.#later.pop();
      if (isWaiting(top.run)) this.ready.push(top.run);
    }
    for (let run = this.ready.peek(); run !== undefined; run = this.ready.peek()) {
      if (run.runAt <= now) return run;
      // Its next attempt is later, or the clock was set back.
      this.ready.drop();
      this.#later.push({ at: run.runAt, run });
    }
    return null;
  }

  /** When the next waiting run may start; null if none waits for its time. */
  nextTime(): Instant | null {
    for (let top = this.#later.peek(); top !== undefined; top = this.#later.peek()) {
      if (isWaiting(top.run)) return top.at;
      this.#later.pop();
    }
    return null;
  }

  /** Puts a run back into the queue, to start at `at` or later. */
  putBack(run: QueuedRun, at: Instant): void {
    if (!isWaiting(run)) return;
    if (at <= this.#clock.now() && run.runAt <= at) this.ready.push(run);
    else this.#later.push({ at: Math.max(at, run.runAt), run });
  }

  /** Applies an event that this process has appended. @param trace its `traceparent` */
  applied(run: QueuedRun, event: RunEvent, revision: number, trace?: string): void {
    if (revision <= run.revision) return;
    this.#change(run, event, revision, trace);
  }

  /** Applies a run's stream, which may be ahead of this queue. */
  refresh(run: QueuedRun, known: KnownRun): void {
    if (run.ended || known.revision <= run.revision) return;
    run.revision = known.revision;
    run.plain = false;
    if (hasEnded(known)) {
      run.ended = true;
      this.#runs.delete(run);
      this.#setWaits(run, noWaits);
      this.#notifyStarted(run);
      for (const { onFinished } of this.#listeners) onFinished?.(run);
      return;
    }
    run.state = known.state as QueuedRun['state'];
    run.owner = known.lease_owner;
    run.attempt = known.attempt;
    run.startedAt = known.first_started_at === null ? null : fromIso(known.first_started_at);
    run.interruptions = known.interruptions;
    run.runAt = fromIso(known.run_at);
    run.cancelRequested = known.cancel_requested;
    this.#setWaits(run, known.waits);
    this.#enqueue(run);
  }

  /** Builds a run that is not in the log yet. @param at the time of its request */
  draft(id: string, request: DataOf<'RunRequested'>, at: Instant): QueuedRun {
    const run = fromRequest(id, request, toIso(at), true, this.#turn());
    run.revision = NOT_WRITTEN;
    return run;
  }

  /**
   * Adds a run that is about to be requested, as taken. Call `applied` or `dropExpected` afterwards.
   *
   * @returns false if the run is known already
   */
  expect(draft: QueuedRun): boolean {
    if (this.#runs.has(draft.id)) return false;
    draft.taken = true;
    this.#runs.add(draft);
    return true;
  }

  /** An expected run was not written, as far as is known. If the log has brought it in the meantime, it is queued. */
  dropExpected(run: QueuedRun): void {
    run.taken = false;
    if (run.revision !== NOT_WRITTEN) {
      if (!run.ended) this.#enqueue(run);
      return;
    }
    run.ended = true;
    this.#runs.delete(run);
  }

  /** Adds an unfinished run of the view that this queue has missed. */
  restore(run: RunDocument): void {
    this.#add(fromDocument(run, this.#turn()));
    this.notifyReady();
  }

  /**
   * Reads the events that runs executed here have received while the log was not followed. Otherwise a canceled run
   * would continue until its step ends.
   */
  async #catchUpTaken(): Promise<void> {
    const taken = [...this.#runs.values()].filter((run) => run.taken);
    await mapInBatches(taken, CONCURRENT_READS, async ({ id, revision }) => {
      const behind = { from: revision + 1, faulty: true };
      for (const event of await this.#store.readStream(streams.run(id), behind)) this.#take(event);
    });
  }

  #take(event: RecordedEvent): void {
    if (event.fault !== undefined) {
      const { stream, fault } = event;
      this.#telemetry.log.error('an event of a run does not match its schema', { stream, fault });
      return;
    }
    const id = idOf(event.stream);
    const known = this.#runs.get(id);
    const { occurredAt, traceparent } = event.metadata;
    if (known) {
      // Already applied: this process wrote the event, or the log is followed again from an earlier
      // position.
      if (event.revision <= known.revision) return;
      this.#change(known, event as RunEvent, event.revision, traceparent, fromIso(occurredAt));
      if (known.taken) for (const { onTaken } of this.#listeners) onTaken?.(known, event);
    } else if (event.type === 'RunRequested' && event.revision === 0) {
      this.#add(fromRequest(id, event.data, occurredAt, this.#current, this.#turn()));
    }
  }

  #turn(): number {
    return (this.#turns += 1);
  }

  #add(run: QueuedRun): void {
    if (this.#runs.has(run.id)) return;
    this.#runs.add(run);
    this.#enqueue(run);
    this.#notifyWaits(run);
  }

  #notifyStarted(run: QueuedRun): void {
    if (!this.#current || run.startedAt === null) return;
    for (const { onStarted } of this.#listeners) onStarted?.(run);
  }

  #enqueue(run: QueuedRun): void {
    // Without a view, the log brings all runs that ever existed; the unfinished ones are enqueued at its end.
    if (!this.#current) return;
    this.#notifyStarted(run);
    // The worker puts a taken run back. If it were added here, it would be skipped and lost.
    if (!this.#startsRuns || !mayStart(run) || run.taken) return;
    if (run.runAt <= this.#clock.now()) this.ready.push(run);
    else this.#later.push({ at: run.runAt, run });
  }

  #change(
    run: QueuedRun,
    event: RunEvent,
    revision: number,
    trace: string | undefined,
    at = this.#clock.now(),
  ): void {
    run.revision = revision;
    run.plain = false;
    if (event.type === 'RunStepSuspended' && this.#current) {
      for (const { onSuspended } of this.#listeners) onSuspended?.(event.data, trace);
    }
    this.#setWaits(run, evolveSlimWaits(run.waits, event));
    switch (event.type) {
      case 'RunStarted':
        if (event.data.attempt !== run.attempt) run.interruptions = 0;
        run.state = 'running';
        run.owner = event.data.worker;
        run.attempt = event.data.attempt;
        run.startedAt ??= at;
        this.#notifyStarted(run);
        break;
      case 'RunInterrupted':
        // A run that loses its key during a back-off still waits for its next attempt.
        if (run.state !== 'retrying') run.state = 'queued';
        run.owner = null;
        if (event.data.cause === 'lease_expired') run.interruptions += 1;
        this.#enqueue(run);
        break;
      case 'RunAttemptFailed':
        run.state = 'retrying';
        run.owner = null;
        run.runAt = fromIso(event.data.retry_at);
        this.#enqueue(run);
        break;
      case 'RunStepResumed':
        if (run.state !== 'waiting' || !mayContinue(run.waits)) break;
        run.state = 'queued';
        this.#enqueue(run);
        break;
      case 'RunReleased':
        run.state = mayContinue(run.waits) ? 'queued' : 'waiting';
        run.owner = null;
        this.#enqueue(run);
        break;
      case 'RunCancelRequested':
        run.cancelRequested = true;
        break;
      case 'RunSucceeded':
      case 'RunFailed':
      case 'RunCanceled':
      case 'RunSkipped':
      case 'Abandoned':
        run.ended = true;
        this.#runs.delete(run);
        this.#notifyStarted(run);
        if (!run.taken) for (const { onEnded } of this.#listeners) onEnded?.(run);
        for (const { onFinished } of this.#listeners) onFinished?.(run);
        break;
    }
  }

  #setWaits(run: QueuedRun, waits: readonly Wait[]): void {
    if (run.waits === waits) return;
    run.waits = waits;
    if (this.#current) for (const { onWaits } of this.#listeners) onWaits?.(run);
  }

  #notifyWaits(run: QueuedRun): void {
    if (run.waits.length === 0 || !this.#current) return;
    for (const { onWaits } of this.#listeners) onWaits?.(run);
  }
}
