import { fromIso, toIso, type Clock, type Instant } from '../../domain/clock.ts';
import { type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf, RunEvent } from '../../domain/events/catalogue.ts';
import { hasEnded, type KnownRun } from '../../domain/runs/run.ts';
import { sideBySide } from '../../domain/side-by-side.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { TransientMap } from '../../domain/transient-map.ts';
import type { RunState, RunTrigger } from '../../domain/vocabulary.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { loadView, type ReadableViews } from '../../projections/reading/load-view.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import { Heap } from '../heap.ts';
import { fromDocument, fromRequest } from './queued-run.ts';

/** An unfinished run as a worker holds it: little, as there may be many. */
export interface QueuedRun {
  readonly id: string;
  readonly taskId: string;
  readonly taskRevision: number;
  readonly createdBy: string;
  readonly trigger: RunTrigger;
  readonly priority: number;
  /** Nominal time; null for a run by hand or by event. */
  readonly scheduledFor: string | null;
  /** Orders those of the same priority. */
  readonly since: Instant;
  /** Orders those of the same millisecond: when this process came to know of it. */
  readonly turn: number;
  /** It was requested while this process followed the log: nobody has died of it before. */
  readonly isNew: boolean;
  /** All that its stream holds is the request, and the request has nothing that is not here. */
  plain: boolean;
  state: Extract<RunState, 'queued' | 'running' | 'retrying'>;
  runAt: Instant;
  attempt: number;
  /** Its first start, or when this process heard of it; null before. */
  startedAt: Instant | null;
  interruptions: number;
  owner: string | null;
  cancelRequested: boolean;
  revision: number;
  /** A worker of this process is busy with it. */
  taken: boolean;
  /** It has ended; kept by whoever still holds a reference. */
  ended: boolean;
}

/** How many streams of runs are read side by side. */
const SIDE_BY_SIDE = 32;

/** The revision of a run of whose stream nothing is known. */
const NOT_WRITTEN = -1;

/**
 * Every unfinished run, in memory: the runs view, loaded once and followed live. Whoever takes one appends
 * with the revision that stands here; a stale entry costs a lost race.
 */
export class RunQueue {
  private readonly store: EventStore;
  private readonly readModel: ReadableViews;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly runs = new TransientMap<string, QueuedRun>();
  private readonly ready = new Heap<QueuedRun>(goesBefore);
  private readonly later = new Heap<{ at: Instant; run: QueuedRun }>((a, b) => a.at < b.at);
  /** False until the end of the log was reached: what is over by now may not be known. */
  private current = false;
  private turns = 0;
  /** Something may be there to take. */
  onReady: () => void = () => {};
  /** A run that this process works on was changed by somebody else (or by this process itself). */
  onTaken: (run: QueuedRun, event: RecordedEvent) => void = () => {};
  /** A run has ended that no worker of this process is busy with; its `state` is still the one before. */
  onEnded: (run: QueuedRun) => void = () => {};
  /** A run that has started before waits to go on, or does so no more: it is running, or has ended. */
  onBegun: (run: QueuedRun) => void = () => {};

  constructor(store: EventStore, readModel: ReadableViews, clock: Clock, telemetry: Telemetry) {
    this.store = store;
    this.readModel = readModel;
    this.clock = clock;
    this.telemetry = telemetry;
  }

  get size(): number {
    return this.runs.size;
  }

  /** How many are not running. An upper bound: some may have been passed over already. */
  get waiting(): number {
    return this.ready.size + this.later.size;
  }

  /** Whether the end of the log was reached, so that what is unfinished is in here, and nothing else. */
  get isCurrent(): boolean {
    return this.current;
  }

  get(id: string): QueuedRun | undefined {
    return this.runs.get(id);
  }

  all(): IterableIterator<QueuedRun> {
    return this.runs.values();
  }

  /** Loads the unfinished runs, then follows the log until the signal is aborted. */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    this.current = false;
    // What was known before a break may have ended since; what is being worked on stays.
    for (const run of [...this.runs.values()].filter(({ taken }) => !taken)) {
      run.ended = true;
      this.runs.delete(run.id);
    }
    const unfinished = {
      field: 'state',
      op: 'in',
      value: ['queued', 'running', 'retrying'],
    } as const;
    const after = await loadView(
      { store: this.store, readModel: this.readModel },
      runsProjection,
      [unfinished],
      (document) => this.add(fromDocument(document, this.turn())),
    );
    await this.catchUpTaken();
    for await (const message of this.store.subscribe({ after, prefixes: ['run-'], signal })) {
      if (message.kind === 'events') {
        for (const event of message.events) this.take(event);
        // What was queued before the end of the log is known may have been taken since.
        if (this.current) this.onReady();
      } else if (!this.current) {
        this.current = true;
        for (const run of this.runs.values()) this.line(run);
        ready();
        this.onReady();
      }
    }
  }

  /** The first that may start now, by priority, age, and when this process came to know of it; null when none may. */
  next(now: Instant): QueuedRun | null {
    for (let top = this.later.peek(); top !== undefined && top.at <= now; top = this.later.peek()) {
      this.later.pop();
      if (isWaiting(top.run)) this.ready.push(top.run);
    }
    for (;;) {
      const run = this.ready.pop();
      if (run === undefined) return null;
      if (!isWaiting(run)) continue;
      if (run.runAt <= now) return run;
      // It was due once: its next attempt is not yet, or the clock was put back.
      this.later.push({ at: run.runAt, run });
    }
  }

  /** When the next run's time comes; null when none is waiting for its time. */
  nextTime(): Instant | null {
    for (let top = this.later.peek(); top !== undefined; top = this.later.peek()) {
      if (isWaiting(top.run)) return top.at;
      this.later.pop();
    }
    return null;
  }

  /** Puts a run back in line; `at`: not before then. */
  putBack(run: QueuedRun, at: Instant): void {
    if (!isWaiting(run)) return;
    if (at <= this.clock.now() && run.runAt <= at) this.ready.push(run);
    else this.later.push({ at: Math.max(at, run.runAt), run });
  }

  /** Takes in what this process has appended itself, before the log brings it. */
  applied(run: QueuedRun, event: RunEvent, revision: number): void {
    if (revision <= run.revision) return;
    this.change(run, event, revision);
  }

  /**
   * Takes in what a run's stream says, where the log has not brought it: it may be on its way, or have come while
   * nobody followed.
   */
  refresh(run: QueuedRun, known: KnownRun): void {
    if (run.ended || known.revision <= run.revision) return;
    run.revision = known.revision;
    run.plain = false;
    if (hasEnded(known)) {
      run.ended = true;
      this.runs.delete(run.id);
      this.begun(run);
      return;
    }
    run.state = known.state as QueuedRun['state'];
    run.owner = known.lease_owner;
    run.attempt = known.attempt;
    run.startedAt = known.first_started_at === null ? null : fromIso(known.first_started_at);
    run.interruptions = known.interruptions;
    run.runAt = fromIso(known.run_at);
    run.cancelRequested = known.cancel_requested;
    this.line(run);
  }

  /** A run that is not in the log, as it will be. @param at when it is requested */
  draft(id: string, request: DataOf<'RunRequested'>, at: Instant): QueuedRun {
    const run = fromRequest(id, request, toIso(at), true, this.turn());
    run.revision = NOT_WRITTEN;
    return run;
  }

  /**
   * Takes a run that is about to be requested, before it is in the log. To be told what became of it by `applied`, or
   * by `unexpected`.
   *
   * @returns false where it is known already
   */
  expect(draft: QueuedRun): boolean {
    if (this.runs.has(draft.id)) return false;
    draft.taken = true;
    this.runs.set(draft.id, draft);
    return true;
  }

  /** A run that was expected has not come about, as far as is known: what the log has told of it meanwhile counts. */
  unexpected(run: QueuedRun): void {
    run.taken = false;
    if (run.revision !== NOT_WRITTEN) {
      if (!run.ended) this.line(run);
      return;
    }
    run.ended = true;
    this.runs.delete(run.id);
  }

  /** Takes in an unfinished run that the view knows of and that this queue has missed. */
  restore(run: RunDocument): void {
    this.add(fromDocument(run, this.turn()));
    this.onReady();
  }

  /**
   * What became of the runs that this process works on, as far as the view knows it already: of that the log tells no
   * more. One that is to be canceled, or was taken away, would go on for as long as its step does.
   */
  private async catchUpTaken(): Promise<void> {
    const taken = [...this.runs.values()].filter((run) => run.taken);
    await sideBySide(taken, SIDE_BY_SIDE, async ({ id, revision }) => {
      const behind = { from: revision + 1, faulty: true };
      for (const event of await this.store.readStream(streams.run(id), behind)) this.take(event);
    });
  }

  private take(event: RecordedEvent): void {
    if (event.fault !== undefined) {
      this.telemetry.log.error('an event of a run does not fit its schema', {
        stream: event.stream,
        fault: event.fault,
      });
      return;
    }
    const id = idOf(event.stream);
    const known = this.runs.get(id);
    if (known) {
      // Nothing new: this process wrote it, or the log is followed anew from an earlier place.
      if (event.revision <= known.revision) return;
      this.change(known, event as RunEvent, event.revision, fromIso(event.metadata.occurredAt));
      if (known.taken) this.onTaken(known, event);
    } else if (event.type === 'RunRequested' && event.revision === 0) {
      const { occurredAt } = event.metadata;
      this.add(fromRequest(id, event.data, occurredAt, this.current, this.turn()));
    }
  }

  private turn(): number {
    this.turns += 1;
    return this.turns;
  }

  private add(run: QueuedRun): void {
    if (this.runs.has(run.id)) return;
    this.runs.set(run.id, run);
    this.line(run);
  }

  private begun(run: QueuedRun): void {
    if (this.current && run.startedAt !== null) this.onBegun(run);
  }

  private line(run: QueuedRun): void {
    // Without a view all runs that ever were come by: those that are unfinished line up when these are known.
    if (!this.current) return;
    this.begun(run);
    // One that is taken is put back by who has taken it: here it would be passed over, and lost.
    if (run.state === 'running' || run.taken) return;
    if (run.runAt <= this.clock.now()) this.ready.push(run);
    else this.later.push({ at: run.runAt, run });
  }

  private change(run: QueuedRun, event: RunEvent, revision: number, at = this.clock.now()): void {
    run.revision = revision;
    run.plain = false;
    switch (event.type) {
      case 'RunStarted':
        if (event.data.attempt !== run.attempt) run.interruptions = 0;
        run.state = 'running';
        run.owner = event.data.worker;
        run.attempt = event.data.attempt;
        run.startedAt ??= at;
        this.begun(run);
        break;
      case 'RunInterrupted':
        // What loses a key's slot in a back-off is still followed by the next attempt.
        if (run.state !== 'retrying') run.state = 'queued';
        run.owner = null;
        if (event.data.cause === 'lease_expired') run.interruptions += 1;
        this.line(run);
        break;
      case 'RunAttemptFailed':
        run.state = 'retrying';
        run.owner = null;
        run.runAt = fromIso(event.data.retry_at);
        this.line(run);
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
        this.runs.delete(run.id);
        this.begun(run);
        if (!run.taken) this.onEnded(run);
        break;
      case 'RunRequested':
      case 'RunStepCompleted':
        break;
    }
  }
}

const isWaiting = (run: QueuedRun): boolean => !run.ended && !run.taken && run.state !== 'running';

function goesBefore(a: QueuedRun, b: QueuedRun): boolean {
  if (a.priority !== b.priority) return a.priority < b.priority;
  return a.since !== b.since ? a.since < b.since : a.turn < b.turn;
}
