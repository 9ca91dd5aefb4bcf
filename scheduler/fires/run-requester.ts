import { fromIso, toIso, type Clock, type Instant } from '../../domain/clock.ts';
import {
  BEGINNING,
  isConflict,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { DataOf, RunEvent } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { triggeredRunId } from '../../domain/ids.ts';
import { requestRun } from '../../domain/runs/run-request.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { jitterOf, longestJitter } from '../../domain/tasks/jitter.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { RememberedPosition } from '../processes/remembered-position.ts';
import { requestCommandId } from './requests-of-runs.ts';

/** Name under which it remembers up to where every run is requested. */
export const CHECKPOINT = 'runs-requested';

/** Whoever decided a fire requests its run at once; what is missing after this long is made up. Milliseconds. */
const PATIENCE = 2000;

/** More than this waiting, and reading the log waits. */
const MOST_WAITING = 2000;

/** How many runs are requested side by side. */
const SIDE_BY_SIDE = 64;

/** Pause after an obligation could not be met; doubled for each further time, up to the most. Milliseconds. */
const PAUSE = 500;
const MOST_PAUSE = 60_000;

interface Obligation {
  readonly before: Position;
  /** When it began, as far as is known: by the event or by its arrival here, whichever is earlier. */
  readonly since: Instant;
  readonly event: RecordedEvent;
  /** How often in succession it could not be met. */
  failures: number;
  /** Not before then. */
  retryAt: Instant;
}

/**
 * Sees to it that each fire and each triggered task has its run: the runs of published events are requested
 * here, and those of fires whose scheduler died between the decision and the request.
 *
 * It follows the log from the position up to which all is done. Losing that position costs reading again:
 * requesting a run that exists has no effect.
 */
export class RunRequester {
  readonly #store: EventStore;
  readonly #place: RememberedPosition;
  readonly #clock: Clock;
  readonly #leadership: Leadership;
  readonly #telemetry: Telemetry;
  readonly #tasks: PinnedTasks;
  readonly #name: string;
  #waiting: Obligation[] = [];
  #done: Position = BEGINNING;
  #saved: Position = BEGINNING;
  /** Runs that the scheduler of this process is requesting, or is about to: of many that are owed, one after the other. */
  readonly #underWay = new Set<string>();
  /** Runs that the scheduler of this process has requested: nothing to make up. */
  #requested = new Set<string>();
  #requestedBefore = new Set<string>();
  #wakeReader: () => void = () => {};
  #working: Promise<void> = Promise.resolve();
  #busy = false;

  constructor(options: {
    readonly store: EventStore;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly leadership: Leadership;
    readonly telemetry: Telemetry;
    readonly tasks: PinnedTasks;
    readonly name: string;
  }) {
    this.#store = options.store;
    this.#place = new RememberedPosition(options.coordination, options.store, CHECKPOINT);
    this.#clock = options.clock;
    this.#leadership = options.leadership;
    this.#telemetry = options.telemetry;
    this.#tasks = options.tasks;
    this.#name = options.name;
  }

  /**
   * The scheduler of this process requests runs, which may take it longer than anybody has patience: they are left to it.
   * Whoever requested them beside it would take its turns at their keys from it, and tell of fires that had no run.
   *
   * @returns to be called when they were requested, or could not be
   */
  leaveToScheduler(runs: readonly { readonly runId: string }[]): () => void {
    for (const { runId } of runs) this.#underWay.add(runId);
    return () => {
      for (const { runId } of runs) this.#underWay.delete(runId);
    };
  }

  /** The scheduler of this process has requested a run. */
  noteRequested(runId: string): void {
    this.#requested.add(runId);
    if (this.#requested.size < 50_000) return;
    this.#requestedBefore = this.#requested;
    this.#requested = new Set();
  }

  /** Whether the scheduler of this process has requested a run lately, and was answered that it stands in the log. */
  isRequestedHere(runId: string): boolean {
    return this.#requested.has(runId) || this.#requestedBefore.has(runId);
  }

  /** Whether the scheduler of this process is requesting a run, or is about to. */
  isUnderWay(runId: string): boolean {
    return this.#underWay.has(runId);
  }

  /**
   * Requests the run of a fire that has none.
   * @throws EventStoreError all that the log throws; Refusal `NOT_FOUND` of its task
   */
  async makeUp(event: RecordedEvent): Promise<void> {
    if (event.type === 'Fired') await this.#makeUpFire(event, event.data);
  }

  /** Follows the log until the signal is aborted. */
  async follow(signal: AbortSignal): Promise<void> {
    const after = await this.#place.recall();
    this.#done = this.#saved = after;
    // What a former following left comes again from the log.
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
    for await (const message of this.#store.subscribe({ after, prefixes, signal })) {
      if (message.kind === 'caught-up') {
        before = message.position;
      } else {
        for (const event of message.events) {
          if (event.fault !== undefined) this.#reportFault(event);
          else if (isObligation(event)) {
            const since = Math.min(fromIso(event.metadata.occurredAt), this.#clock.now());
            this.#waiting.push({ before, since, event, failures: 0, retryAt: since });
          }
          before = event.position;
        }
        this.#place.came(message.events);
      }
      if (this.#waiting.length === 0) this.#done = before;
      this.#work();
      if (this.#waiting.length > MOST_WAITING) {
        await new Promise<void>((resolve) => (this.#wakeReader = resolve));
      }
    }
  }

  #reportFault({ stream, revision, fault }: RecordedEvent): void {
    const fields = { stream, revision, fault };
    this.#telemetry.log.error('an event that may ask for runs does not fit its schema', fields);
  }

  async #everySecond(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(1000, signal).catch(() => {});
      this.#work();
      await this.#save();
    }
  }

  async #save(): Promise<void> {
    if (this.#done <= this.#saved) return;
    const reached = this.#done;
    try {
      await this.#place.remember(reached, this.#leadership.fence);
      this.#saved = reached;
    } catch (error) {
      this.#telemetry.log.warn('could not remember up to where runs are requested', { error });
    }
  }

  #work(): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#working = this.#fulfilAll()
      .catch((error: unknown) => {
        this.#telemetry.log.warn('runs could not be requested; trying again', { error });
      })
      .finally(() => {
        this.#busy = false;
        this.#wakeReader();
      });
  }

  /** In order, as far as their time has come; what fails stays, and is tried again. */
  async #fulfilAll(): Promise<void> {
    for (;;) {
      const ready = this.#ready();
      if (ready.length === 0) break;
      const met = await Promise.all(ready.map((obligation) => this.#isMet(obligation)));
      const fulfilled = new Set(ready.filter((_, index) => met[index]));
      const last = this.#waiting.at(-1);
      this.#waiting = this.#waiting.filter((obligation) => !fulfilled.has(obligation));
      this.#done = this.#waiting[0]?.before ?? last?.event.position ?? this.#done;
    }
  }

  /** The first of those whose time has come. One that can't be met holds back none behind it. */
  #ready(): readonly Obligation[] {
    const now = this.#clock.now();
    const ready: Obligation[] = [];
    for (const obligation of this.#waiting) {
      if (ready.length >= SIDE_BY_SIDE) break;
      if (this.#isReady(obligation, now)) ready.push(obligation);
    }
    return ready;
  }

  /** Never rejects: what fails stays, and is tried again after a pause. */
  async #isMet(obligation: Obligation): Promise<boolean> {
    try {
      await this.#fulfil(obligation);
      return true;
    } catch (error) {
      const pause = Math.min(PAUSE * 2 ** obligation.failures, MOST_PAUSE);
      obligation.failures += 1;
      obligation.retryAt = this.#clock.now() + pause;
      const { stream, revision } = obligation.event;
      const fields = { stream, revision, error };
      this.#telemetry.log.warn('a run could not be requested; trying again', fields);
      return false;
    }
  }

  #isReady({ event, since, retryAt, failures }: Obligation, now: Instant): boolean {
    // A time that lies ahead by more than any pause: the clock was put back.
    if (failures > 0) return now >= retryAt || retryAt - now > MOST_PAUSE;
    if (event.type === 'Fired' && this.isRequestedHere(event.data.run_id)) return true;
    if (event.type === 'Fired' && this.isUnderWay(event.data.run_id)) return false;
    const atOnce = event.type === 'EventPublished' && this.#leadership.leads;
    return atOnce || now - since >= PATIENCE || now < since;
  }

  async #fulfil({ event }: Obligation): Promise<void> {
    if (event.type === 'Fired') await this.#makeUpFire(event, event.data);
    if (event.type === 'EventPublished') await this.#requestTriggered(event, event.data);
  }

  async #makeUpFire(event: RecordedEvent, fired: DataOf<'Fired'>): Promise<void> {
    if (this.isRequestedHere(fired.run_id)) return;
    const stream = streams.run(fired.run_id);
    if ((await this.#store.readStream(stream, { limit: 1 })).length > 0) return;
    const taskId = idOf(event.stream);
    const task = await this.#tasks.at(taskId, fired.task_revision);
    this.#telemetry.log.warn('a fire had no run; it is made up', {
      task: taskId,
      run: fired.run_id,
    });
    this.#telemetry.count('scheduler_mended_total', { what: 'fire_without_run' });
    const [nominal, next] = [fromIso(fired.nominal), fired.next_fire_at];
    // By what the event says of the next fire: the rule itself may be one that can't be evaluated here any more.
    const { jitter_seconds } = task.definition;
    const longest = longestJitter(jitter_seconds, nominal, next === null ? null : fromIso(next));
    await this.#request(fired.run_id, taskId, task, event, {
      trigger: 'schedule',
      scheduled_for: fired.nominal,
      run_at: toIso(nominal + jitterOf(taskId, longest)),
      event: null,
    });
  }

  async #requestTriggered(
    event: RecordedEvent,
    published: DataOf<'EventPublished'>,
  ): Promise<void> {
    const { event_id: id, topic, payload, source_agent_id, published_at } = published;
    const triggering = { id, topic, payload, source_agent_id, published_at };
    const requestFor = async (taskId: string): Promise<void> => {
      const task = await this.#tasks.latest(taskId);
      await this.#request(triggeredRunId(taskId, id), taskId, task, event, {
        trigger: 'event',
        scheduled_for: null,
        run_at: published_at,
        event: triggering,
      });
    };
    const { triggered_tasks } = published;
    const failures: unknown[] = [];
    for (let from = 0; from < triggered_tasks.length; from += SIDE_BY_SIDE) {
      const some = triggered_tasks.slice(from, from + SIDE_BY_SIDE);
      for (const outcome of await Promise.allSettled(some.map(requestFor))) {
        if (outcome.status === 'rejected') failures.push(outcome.reason);
      }
    }
    // After all others: one task that can't be read keeps no other from its run.
    if (failures.length > 0) throw failures[0];
  }

  async #request(
    runId: string,
    taskId: string,
    task: LiveTask,
    cause: RecordedEvent,
    particulars: Pick<DataOf<'RunRequested'>, 'trigger' | 'scheduled_for' | 'run_at' | 'event'>,
  ): Promise<void> {
    const { created_by, priority, overlap_policy } = task.definition;
    const request: DataOf<'RunRequested'> = {
      task_id: taskId,
      task_revision: task.revision,
      created_by,
      priority,
      overlap_policy,
      retry_of: null,
      prior_steps: [],
      ...particulars,
    };
    const context = this.#contextOf(requestCommandId(runId, request), cause);
    if (task.status === 'canceled' && particulars.trigger === 'event') {
      await this.#recordCanceled(runId, request, context);
      return;
    }
    // A run that is there already is as it should be.
    await requestRun(this.#store, { runId, request, rules: task.definition, context });
  }

  /** What was asked of a task that is canceled by now ends where it begins. */
  async #recordCanceled(
    runId: string,
    request: DataOf<'RunRequested'>,
    context: CommandContext,
  ): Promise<void> {
    const events: RunEvent[] = [
      { type: 'RunRequested', data: request },
      { type: 'RunCanceled', data: { attempt: 0 } },
    ];
    const stream = streams.run(runId);
    try {
      await this.#store.append(stream, toNewEvents(stream, events, context), 'none');
    } catch (error) {
      if (!isConflict(error)) throw error; // a conflict: the run is there
    }
  }

  #contextOf(commandId: string, cause: RecordedEvent): CommandContext {
    const { $correlationId: correlationId, traceparent } = cause.metadata;
    const base = { commandId, actor: 'service', source: this.#name, correlationId };
    return { ...base, causationId: cause.id, traceparent, now: this.#clock.now() };
  }
}

function isObligation(event: RecordedEvent): boolean {
  if (event.type === 'Fired') return true;
  return event.type === 'EventPublished' && event.data.triggered_tasks.length > 0;
}
