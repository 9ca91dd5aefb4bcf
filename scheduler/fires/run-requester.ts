import { fromIso, toIso, type Clock, type Instant } from '../../domain/clock.ts';
import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { DataOf, RunEvent } from '../../domain/events/catalogue.ts';
import { depthOf } from '../../domain/events/metadata.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { nameBasedId, triggeredRunId } from '../../domain/ids.ts';
import { requestRun, runRequestOf, type RunCause } from '../../domain/runs/run-request.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { jitterOf, maxJitter } from '../../domain/tasks/jitter.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { eventForRuns } from '../../domain/topics/stored-payload.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { LogCheckpoint } from '../processes/log-checkpoint.ts';
import type { RequestObserver } from './fire-writer.ts';
import { ignoreConflict, NOT_REQUESTED, requestCommandId } from './request-append.ts';

/** The message that reports a failure; see also {@link NOT_REQUESTED}. */
const NOT_SAVED = 'could not save the position of requested runs';

/** The name of its remembered position. Up to that position, every run is requested. */
export const RUNS_REQUESTED_CHECKPOINT = 'runs-requested';

/** The deciding scheduler requests a run at once. After this long, a missing one is requested here. Milliseconds. */
const REQUEST_GRACE = 2000;

/** With more obligations than this, reading the log pauses. */
const MAX_WAITING = 2000;

const CONCURRENT_REQUESTS = 64;

/** How many of the runs that the scheduler has requested are remembered, in each of two generations. */
const MAX_REMEMBERED = 50_000;

/** Pause after an obligation failed; doubled each time, up to the maximum. Milliseconds. */
const FIRST_PAUSE = 500;
const MAX_PAUSE = 60_000;

/** An event that must be followed by runs. */
interface Obligation {
  readonly before: Position;
  /** The time of the event or of its arrival here, whichever is earlier. */
  readonly since: Instant;
  readonly event: RecordedEvent;
  /** Failures in a row. */
  failures: number;
  /** Not fulfilled before this time. */
  retryAt: Instant;
}

interface RunRequesterOptions {
  readonly store: EventStore;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly leadership: Leadership;
  readonly telemetry: Telemetry;
  readonly tasks: PinnedTasks;
  /** Name of this process, for the metadata. */
  readonly name: string;
}

/**
 * Ensures that each fire and each triggered task has its run. It requests the runs of published events, and those of fires
 * whose scheduler died before it requested them.
 *
 * It follows the log from the position up to which all runs are requested. If that position is lost, it reads again:
 * requesting an existing run has no effect.
 */
export class RunRequester implements RequestObserver {
  readonly #options: RunRequesterOptions;
  readonly #position: LogCheckpoint;
  #waiting: Obligation[] = [];
  #done: Position = BEGINNING;
  #saved: Position = BEGINNING;
  /** Runs that the scheduler of this process is requesting. */
  readonly #requesting = new Set<string>();
  /** Runs that it has requested recently, in two generations. */
  #requested = new Set<string>();
  #requestedBefore = new Set<string>();
  #resumeReading: () => void = () => {};
  #working: Promise<void> = Promise.resolve();
  #busy = false;

  constructor(options: RunRequesterOptions) {
    this.#options = options;
    this.#position = new LogCheckpoint(
      options.coordination,
      options.store,
      RUNS_REQUESTED_CHECKPOINT,
    );
  }

  /**
   * Leaves runs to the scheduler of this process, which is requesting them. There is no time limit. A second request
   * would compete for their keys and report fires without runs.
   *
   * @returns called when they were requested, or could not be
   */
  leaveToScheduler(runs: readonly { readonly runId: string }[]): () => void {
    for (const { runId } of runs) this.#requesting.add(runId);
    return () => {
      for (const { runId } of runs) this.#requesting.delete(runId);
    };
  }

  /** The scheduler of this process has requested a run. */
  noteRequested(runId: string): void {
    this.#requested.add(runId);
    if (this.#requested.size < MAX_REMEMBERED) return;
    this.#requestedBefore = this.#requested;
    this.#requested = new Set();
  }

  /** Whether the scheduler of this process has requested a run recently, and it is in the log. */
  isRequestedHere(runId: string): boolean {
    return this.#requested.has(runId) || this.#requestedBefore.has(runId);
  }

  /** Whether the scheduler of this process is requesting a run. */
  isRequesting(runId: string): boolean {
    return this.#requesting.has(runId);
  }

  /**
   * Requests the run of a fire that has none.
   * @throws EventStoreError as the log does; RefusalError `NOT_FOUND` for its task
   */
  async requestMissingRun(event: RecordedEvent): Promise<void> {
    if (event.type === 'Fired') await this.#makeUpFire(event, event.data);
  }

  /** Follows the log until the signal is aborted. */
  async follow(signal: AbortSignal): Promise<void> {
    const after = await this.#position.load();
    this.#done = this.#saved = after;
    // The log delivers the obligations of the earlier subscription again.
    this.#waiting = [];
    const ended = new AbortController();
    const beat = this.#everySecond(AbortSignal.any([signal, ended.signal]));
    try {
      await this.#read(after, signal);
    } finally {
      ended.abort();
      await beat;
      await this.#working;
    }
    await this.#save();
  }

  async #read(after: Position, signal: AbortSignal): Promise<void> {
    let before = after;
    const prefixes = ['fires-', 'topic-'];
    for await (const message of this.#options.store.subscribe({ after, prefixes, signal })) {
      if (message.kind === 'caught-up') {
        before = message.position;
      } else {
        for (const event of message.events) {
          if (event.fault !== undefined) this.#reportFault(event);
          else if (isObligation(event)) {
            const since = Math.min(fromIso(event.metadata.occurredAt), this.#options.clock.now());
            this.#waiting.push({ before, since, event, failures: 0, retryAt: since });
          }
          before = event.position;
        }
        this.#position.observe(message.events);
      }
      if (this.#waiting.length === 0) this.#done = before;
      this.#work();
      if (this.#waiting.length > MAX_WAITING) {
        await new Promise<void>((resolve) => (this.#resumeReading = resolve));
      }
    }
  }

  #reportFault({ stream, revision, fault }: RecordedEvent): void {
    const fields = { stream, revision, fault };
    this.#options.telemetry.log.error(
      'an event that may trigger runs does not match its schema',
      fields,
    );
  }

  async #everySecond(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(1000, signal).catch(() => {});
      this.#work();
      await this.#save();
    }
  }

  async #save(): Promise<void> {
    if (this.#done <= this.#saved) return;
    const reached = this.#done;
    try {
      await this.#position.save(reached, this.#options.leadership.fence);
      this.#saved = reached;
      this.#options.telemetry.failures.worked(NOT_SAVED);
    } catch (error) {
      this.#options.telemetry.failures.failed(NOT_SAVED, error);
    }
  }

  #work(): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#working = this.#fulfilAll()
      .catch((error: unknown) => {
        this.#options.telemetry.failures.failed(NOT_REQUESTED, error);
      })
      .finally(() => {
        this.#busy = false;
        this.#resumeReading();
      });
  }

  /** Fulfils ready obligations in order. Failed ones stay, and are retried. */
  async #fulfilAll(): Promise<void> {
    for (;;) {
      const ready = this.#ready();
      if (ready.length === 0) break;
      const met = await Promise.all(ready.map((obligation) => this.#isMet(obligation)));
      const fulfilled = new Set(ready.filter((_, index) => met[index]));
      const last = this.#waiting.at(-1);
      this.#waiting = this.#waiting.filter((obligation) => !fulfilled.has(obligation));
      this.#done = this.#waiting[0]?.before ?? last?.event.position ?? this.#done;
      const stillFails = this.#waiting.some(({ failures }) => failures > 0);
      if (!stillFails) this.#options.telemetry.failures.worked(NOT_REQUESTED);
    }
  }

  /** The first ready obligations. A failing obligation does not block those after it. */
  #ready(): readonly Obligation[] {
    const now = this.#options.clock.now();
    const ready: Obligation[] = [];
    for (const obligation of this.#waiting) {
      if (ready.length >= CONCURRENT_REQUESTS) break;
      if (this.#isReady(obligation, now)) ready.push(obligation);
    }
    return ready;
  }

  /** Never rejects: a failed obligation is retried after a pause. */
  async #isMet(obligation: Obligation): Promise<boolean> {
    try {
      await this.#fulfil(obligation);
      return true;
    } catch (error) {
      const pause = Math.min(FIRST_PAUSE * 2 ** obligation.failures, MAX_PAUSE);
      obligation.failures += 1;
      obligation.retryAt = this.#options.clock.now() + pause;
      const { stream, revision } = obligation.event;
      const fields = { stream, revision };
      this.#options.telemetry.failures.failed(NOT_REQUESTED, error, fields);
      return false;
    }
  }

  #isReady({ event, since, retryAt, failures }: Obligation, now: Instant): boolean {
    // A retry further ahead than any pause means that the clock was set back.
    if (failures > 0) return now >= retryAt || retryAt - now > MAX_PAUSE;
    if (event.type === 'Fired' && this.isRequestedHere(event.data.run_id)) return true;
    if (event.type === 'Fired' && this.isRequesting(event.data.run_id)) return false;
    const atOnce = event.type === 'EventPublished' && this.#options.leadership.leads;
    return atOnce || now - since >= REQUEST_GRACE || now < since;
  }

  async #fulfil({ event }: Obligation): Promise<void> {
    if (event.type === 'Fired') await this.#makeUpFire(event, event.data);
    if (event.type === 'EventPublished') await this.#requestTriggered(event, event.data);
  }

  async #makeUpFire(event: RecordedEvent, fired: DataOf<'Fired'>): Promise<void> {
    if (this.isRequestedHere(fired.run_id)) return;
    const { store, tasks, telemetry } = this.#options;
    const stream = streams.run(fired.run_id);
    if ((await store.readStream(stream, { limit: 1 })).length > 0) return;
    const taskId = idOf(event.stream);
    const task = await tasks.at(taskId, fired.task_revision);
    const fields = { task: taskId, run: fired.run_id };
    telemetry.log.warn('requested the missing run of a fire', fields);
    telemetry.count('scheduler_mended_total', { what: 'fire_without_run' });
    const [nominal, next] = [fromIso(fired.nominal), fired.next_fire_at];
    // Built from the event's next fire, because this release may be unable to evaluate the rule.
    const { jitter_seconds } = task.definition;
    const longest = maxJitter(jitter_seconds, nominal, next === null ? null : fromIso(next));
    await this.#request(fired.run_id, taskId, task, event, {
      trigger: 'schedule',
      scheduled_for: fired.nominal,
      run_at: toIso(nominal + jitterOf(taskId, longest)),
    });
  }

  async #requestTriggered(
    event: RecordedEvent,
    published: DataOf<'EventPublished'>,
  ): Promise<void> {
    const { event_id: id, published_at } = published;
    const context = this.#contextOf(nameBasedId('payload', id), event);
    const triggering = await eventForRuns(this.#options.store, published, context);
    const requestFor = async (taskId: string): Promise<void> => {
      const task = await this.#options.tasks.latest(taskId);
      await this.#request(triggeredRunId(taskId, id), taskId, task, event, {
        trigger: 'event',
        run_at: published_at,
        event: triggering,
      });
    };
    const { triggered_tasks } = published;
    const failures: unknown[] = [];
    for (let from = 0; from < triggered_tasks.length; from += CONCURRENT_REQUESTS) {
      const some = triggered_tasks.slice(from, from + CONCURRENT_REQUESTS);
      for (const outcome of await Promise.allSettled(some.map(requestFor))) {
        if (outcome.status === 'rejected') failures.push(outcome.reason);
      }
    }
    // Thrown after all others, so that an unreadable task does not block the runs of other tasks.
    if (failures.length > 0) throw failures[0];
  }

  async #request(
    runId: string,
    taskId: string,
    task: LiveTask,
    cause: RecordedEvent,
    runCause: RunCause,
  ): Promise<void> {
    const { store } = this.#options;
    const { definition: rules, revision, namespace } = task;
    const request = runRequestOf({ id: taskId, revision, definition: rules, namespace }, runCause);
    const context = this.#contextOf(requestCommandId(runId, request), cause);
    if (task.status !== 'canceled' || runCause.trigger !== 'event') {
      // An existing run stays as it is.
      await requestRun(store, { runId, request, rules, context });
      return;
    }
    // If the task has been canceled since, the run ends at once.
    const events: RunEvent[] = [
      { type: 'RunRequested', data: request },
      { type: 'RunCanceled', data: { attempt: 0 } },
    ];
    const stream = streams.run(runId);
    const placed = toNewEvents(stream, events, { ...context, namespace });
    await store.append(stream, placed, 'none').catch(ignoreConflict);
  }

  #contextOf(commandId: string, cause: RecordedEvent): CommandContext {
    const { $correlationId: correlationId, traceparent } = cause.metadata;
    const base = { commandId, actor: 'service', source: this.#options.name, correlationId };
    const depth = depthOf(cause.metadata);
    return { ...base, causationId: cause.id, traceparent, depth, now: this.#options.clock.now() };
  }
}

function isObligation(event: RecordedEvent): boolean {
  if (event.type === 'Fired') return true;
  return event.type === 'EventPublished' && event.data.triggered_tasks.length > 0;
}
