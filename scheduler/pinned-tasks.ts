import type { EventStore } from '../domain/event-store.ts';
import type { TaskEvent } from '../domain/events/catalogue.ts';
import type { JsonObject } from '../domain/json.ts';
import { compilePipeline } from '../domain/pipeline/compile.ts';
import { streams } from '../domain/streams.ts';
import { requireTask, taskFold, type LiveTask, type TaskState } from '../domain/tasks/task.ts';
import type { LiveStreams } from '../projections/reading/live-streams.ts';
import { WeighedCache } from '../projections/reading/weighed-cache.ts';

/** Limits of the cache: tasks, and their characters of JSON. */
const MAX_CACHED_TASKS = 20_000;
const MAX_CACHED_WEIGHT = 32 * 1024 * 1024;

/** Tasks at the revisions to which runs are pinned, cached. */
export class PinnedTasks {
  readonly #store: EventStore;
  readonly #live: LiveStreams<TaskState, TaskEvent>;
  readonly #cache = new WeighedCache<LiveTask>({
    entries: MAX_CACHED_TASKS,
    weight: MAX_CACHED_WEIGHT,
  });

  constructor(store: EventStore, live: LiveStreams<TaskState, TaskEvent>) {
    this.#store = store;
    this.#live = live;
  }

  /** The task at its latest known revision. @throws RefusalError `NOT_FOUND` */
  latest(taskId: string): LiveTask | Promise<LiveTask> {
    const loaded = this.#live.get(taskId);
    return loaded instanceof Promise
      ? loaded.then(({ state }) => requireTask(state))
      : requireTask(loaded.state);
  }

  /** Whether the task is known to be active. */
  isActive(taskId: string): boolean {
    return this.#live.peek(taskId)?.state.status === 'active';
  }

  /** The task at a revision, if it is in memory. */
  peek(taskId: string, revision: number): LiveTask | undefined {
    const live = this.#live.peek(taskId)?.state;
    if (live !== undefined && live.status !== 'none' && live.revision === revision) return live;
    return this.#cache.get(`${taskId}@${revision}`);
  }

  /** Loads a task and compiles its pipeline ahead of use. A failure is reported when the task is used. */
  prepare(taskId: string, revision: number): void {
    const known = this.peek(taskId, revision);
    if (known !== undefined) compileOf(known);
    else this.at(taskId, revision).then(compileOf, () => {});
  }

  /** The task at a revision. @throws RefusalError `NOT_FOUND` */
  async at(taskId: string, revision: number): Promise<LiveTask> {
    const known = this.peek(taskId, revision);
    if (known) return known;
    const latest = await this.latest(taskId);
    const task = latest.revision === revision ? latest : await this.#foldTo(taskId, revision);
    this.#cache.set(`${taskId}@${revision}`, task);
    return task;
  }

  async #foldTo(taskId: string, revision: number): Promise<LiveTask> {
    const events = await this.#store.readStream(streams.task(taskId), { limit: revision + 1 });
    let state = taskFold.initial;
    for (const event of events)
      state = taskFold.evolve(state, event as unknown as TaskEvent, event);
    return requireTask(state);
  }
}

/** The result is cached with the payload. */
function compileOf({ definition }: LiveTask): void {
  compilePipeline(definition.payload as JsonObject);
}
