import type { EventStore } from '../domain/event-store.ts';
import type { TaskEvent } from '../domain/events/catalogue.ts';
import type { JsonObject } from '../domain/json.ts';
import { compilePipeline } from '../domain/pipeline/compile.ts';
import { streams } from '../domain/streams.ts';
import { requireTask, taskFold, type LiveTask, type TaskState } from '../domain/tasks/task.ts';
import type { LiveStreams } from '../projections/reading/live-streams.ts';
import { WeighedCache } from '../projections/reading/weighed-cache.ts';

const CAPACITY = 20_000;

/** Of all that is kept, in characters of JSON. */
const WEIGHT = 32 * 1024 * 1024;

/** Tasks as they stood at a revision, for the runs that are pinned to it. What was read is kept. */
export class PinnedTasks {
  private readonly store: EventStore;
  private readonly live: LiveStreams<TaskState, TaskEvent>;
  private readonly kept = new WeighedCache<LiveTask>({ entries: CAPACITY, weight: WEIGHT });

  constructor(store: EventStore, live: LiveStreams<TaskState, TaskEvent>) {
    this.store = store;
    this.live = live;
  }

  /** The task as it stands now, as far as it is known here. @throws Refusal `NOT_FOUND` */
  latest(taskId: string): LiveTask | Promise<LiveTask> {
    const loaded = this.live.get(taskId);
    return loaded instanceof Promise
      ? loaded.then(({ state }) => requireTask(state))
      : requireTask(loaded.state);
  }

  /** Whether the task is known here to be active now. */
  isActive(taskId: string): boolean {
    return this.live.peek(taskId)?.state.status === 'active';
  }

  /** The task at a revision, if it is at hand. */
  peek(taskId: string, revision: number): LiveTask | undefined {
    const live = this.live.peek(taskId)?.state;
    if (live !== undefined && live.status !== 'none' && live.revision === revision) return live;
    return this.kept.get(`${taskId}@${revision}`);
  }

  /** Has a task, and what its pipeline compiles to, at hand by the time that it is asked for. A failure shows when it is. */
  prepare(taskId: string, revision: number): void {
    const known = this.peek(taskId, revision);
    if (known !== undefined) compileOf(known);
    else this.at(taskId, revision).then(compileOf, () => {});
  }

  /** The task at a revision. @throws Refusal `NOT_FOUND` */
  async at(taskId: string, revision: number): Promise<LiveTask> {
    const known = this.peek(taskId, revision);
    if (known) return known;
    const latest = await this.latest(taskId);
    const task = latest.revision === revision ? latest : await this.foldTo(taskId, revision);
    this.kept.set(`${taskId}@${revision}`, task);
    return task;
  }

  private async foldTo(taskId: string, revision: number): Promise<LiveTask> {
    const events = await this.store.readStream(streams.task(taskId), { limit: revision + 1 });
    let state = taskFold.initial;
    for (const event of events)
      state = taskFold.evolve(state, event as unknown as TaskEvent, event);
    return requireTask(state);
  }
}

/** What it comes to is kept with the payload. */
function compileOf({ definition }: LiveTask): void {
  compilePipeline(definition.payload as JsonObject);
}
