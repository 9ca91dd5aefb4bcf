import { fromIso, type Instant } from '../../domain/clock.ts';
import type { AppendResult, StreamAppend } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import type { ScheduledRun } from '../../domain/tasks/fires.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { FireAppends, RequestAppender, WriteContext } from '../fires/fire-writer.ts';
import type { RunExecutor } from '../runs/run-executor.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import { RunStart, type RunStartOptions } from '../runs/run-start.ts';
import type { RunParts } from '../runs/run-work.ts';
import type { Worker } from '../worker.ts';
import { StartsFirst } from './starts-first.ts';

/** How many runs may be starting or ending; beyond that, runs start from the queue. */
const MAX_STARTING = 2048;

/** A start that was prepared earlier than this is built again, because its lease would be too short. Milliseconds. */
const MAX_DRAFT_AGE = 1_000;

/** Ends wait at most this long for the starts of other due tasks. Milliseconds. */
const MAX_HOLD = 250;

interface EarlyStartsOptions extends Pick<RunParts, 'store' | 'queue'>, RunStartOptions {
  readonly executor: RunExecutor;
  readonly worker: Worker;
  /** Whether the run can start without waiting, even for a key. */
  readonly isInstant: (run: QueuedRun, granted: boolean) => boolean;
}

/** A run that may start early. */
interface Draft {
  readonly run: QueuedRun;
  readonly task: LiveTask;
  readonly start: RunStart;
}

/** A start that is about to be appended. */
interface EarlyStart {
  readonly start: RunStart;
  /** @param revision of the start */
  succeeded(revision: number): void;
  failed(): void;
}

/**
 * Starts runs in the append that requests them. The worker of this process takes an instant run before it is in the log,
 * unless another worker is preferred. All other runs start from the queue. When many tasks are due at one instant, this
 * saves each run an append, and all starts come before the first end.
 */
export class EarlyStarts implements RequestAppender {
  readonly #options: EarlyStartsOptions;
  readonly #startsFirst = new StartsFirst();
  readonly #drafts = new WeakMap<ScheduledRun['request'], Draft>();
  /** The time since which ends have waited for the starts of other due tasks. */
  #hold: { readonly since: Instant; readonly end: () => void } | null = null;

  constructor(options: EarlyStartsOptions) {
    this.#options = options;
  }

  /** Prepares the start of a run that will be requested at `at` or later. */
  prepare(runs: readonly ScheduledRun[], at: Instant): void {
    const [run] = runs;
    const draft = run === undefined || runs.length > 1 ? null : this.#draft(run, at);
    if (run === undefined || draft === null) return;
    this.#options.store.prepare?.([draft.start.newEvent]);
    this.#drafts.set(run.request, draft);
  }

  /** More starts follow in the next turns of the event loop. Ends wait for these starts, up to {@link MAX_HOLD}. */
  holdEnds(now: Instant): void {
    if (this.#hold === null) this.#hold = { since: now, end: this.#startsFirst.hold() };
    else if (now - this.#hold.since > MAX_HOLD) this.releaseEnds();
  }

  releaseEnds(): void {
    this.#hold?.end();
    this.#hold = null;
  }

  /** Begins the work of all started runs, before the worker drains. */
  beginAll(): void {
    this.#startsFirst.beginAll();
  }

  /** Appends a decision and its requests, with the start of the run if it may start early. Rejects as the append does. */
  async append(
    { fires, requests }: FireAppends,
    runs: readonly ScheduledRun[],
    context: WriteContext,
  ): Promise<readonly AppendResult[]> {
    const { store } = this.#options;
    const [run] = runs;
    const [request] = requests;
    // Several runs start from the queue, because the log may write only some of them.
    const isSingle = runs.length === 1 && context.traceparent === undefined;
    const begun = isSingle && run && request ? this.#begin(run, context.now) : null;
    if (begun === null || request === undefined) return store.appendInOrder([fires, ...requests]);
    const events = [...request.events, begun.start.newEvent];
    // The run starts here, so followers may receive it later.
    const mayAnnounceLater = context.isCrowded === true;
    const appends = [
      appendOf(fires, fires.events, mayAnnounceLater),
      appendOf(request, events, mayAnnounceLater),
    ];
    let results: readonly AppendResult[];
    try {
      results = await store.appendInOrder(appends);
    } catch (error) {
      begun.failed();
      throw error;
    }
    const revision = results[1]?.revision;
    if (revision !== undefined) begun.succeeded(revision);
    return results;
  }

  #draft({ runId, request }: ScheduledRun, at: Instant): Draft | null {
    const { queue, executor, isInstant } = this.#options;
    if (fromIso(request.run_at) > at) return null;
    const run = queue.draft(runId, request, at);
    const task = executor.taskToStartAtOnce(run);
    // A run with a key must take it first.
    if (task === null || !isInstant(run, false)) return null;
    return { run, task, start: new RunStart(this.#options, run, at, null) };
  }

  #begin(scheduled: ScheduledRun, now: Instant): EarlyStart | null {
    const { queue, executor, worker } = this.#options;
    // The task may have been loaded since the preparation.
    const draft = this.#drafts.get(scheduled.request) ?? this.#draft(scheduled, now);
    if (draft === null) return null;
    const { run, task } = draft;
    const mayStart = worker.mayTake(run, MAX_STARTING) && executor.taskToStartAtOnce(run) !== null;
    if (!mayStart || !queue.expect(run)) return null;
    const release = worker.reserve();
    const isFresh = now - draft.start.at < MAX_DRAFT_AGE;
    const start = isFresh ? draft.start : new RunStart(this.#options, run, now, null);
    start.moveTo(now);
    const settled = this.#startsFirst.begin();
    return {
      start,
      succeeded: (revision) => {
        settled();
        const requested: RunEvent = { type: 'RunRequested', data: scheduled.request };
        queue.applied(run, requested, revision - 1);
        queue.applied(run, start.event, revision);
        start.written();
        this.#startsFirst.whenStarted(() => this.#execute(run, task, start, release));
      },
      failed: () => {
        settled();
        release();
        queue.dropExpected(run);
        worker.wake();
      },
    };
  }

  #execute(run: QueuedRun, task: LiveTask, start: RunStart, release: () => void): void {
    const { queue, executor, worker, membership } = this.#options;
    // Another process may have taken the run over between the commit and its response.
    if (run.ended || run.state !== 'running' || run.owner !== membership.id) {
      release();
      queue.dropExpected(run);
      return;
    }
    const beforeEnd = (): Promise<void> | null => this.#startsFirst.wait();
    const handle = executor.continue(run, { task, start, beforeEnd });
    worker.follow(run, handle, release);
    if (run.cancelRequested) handle.abort('canceled');
  }
}

/** Field by field, so that all have one hidden class in V8. */
function appendOf(
  { stream, expected }: StreamAppend,
  events: StreamAppend['events'],
  mayAnnounceLater: boolean,
): StreamAppend {
  return { stream, events, expected, mayAnnounceLater };
}
