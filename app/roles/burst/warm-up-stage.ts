import type { Clock } from '../../../domain/clock.ts';
import { decorate } from '../../../domain/decorate.ts';
import type { EventStore, RecordedEvent } from '../../../domain/event-store.ts';
import type { TaskEvent } from '../../../domain/events/catalogue.ts';
import { streams } from '../../../domain/streams.ts';
import { taskFold, type TaskState } from '../../../domain/tasks/task.ts';
import { telemetryOver } from '../../../observability/create-telemetry.ts';
import { Metrics } from '../../../observability/metrics.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import type { ReadableViews } from '../../../projections/reading/load-view.ts';
import { ReadModelError } from '../../../projections/read-model.ts';
import { createScheduler } from '../../../scheduler/burst/create-scheduler.ts';
import { EarlyStarts } from '../../../scheduler/burst/early-starts.ts';
import { DueIndex } from '../../../scheduler/fires/due-index.ts';
import type { RequestObserver } from '../../../scheduler/fires/fire-writer.ts';
import type { Hold } from '../../../scheduler/hold.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import type { Membership } from '../../../scheduler/processes/membership.ts';
import { instantRuns } from '../../../scheduler/runs/instant-runs.ts';
import { RunExecutor, type ExecutorOptions } from '../../../scheduler/runs/run-executor.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import type { PipelineRunner } from '../../../scheduler/runs/run-work.ts';
import type { Scheduler, Timer } from '../../../scheduler/scheduler.ts';
import type { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import { Worker } from '../../../scheduler/worker.ts';
import { warmUpLog } from './warm-up-log.ts';

/** The parts of the real process that a stage uses. */
export interface StageOptions {
  readonly store: EventStore;
  readonly tools: ToolRegistry;
  readonly clock: Clock;
  readonly hold: Hold;
  readonly membership: Membership;
  readonly runPipeline: PipelineRunner;
}

/** The functions that the stage's scheduler and worker call, which other parts provide in the real process. */
export interface StageCalls extends Pick<
  ExecutorOptions,
  'admit' | 'handOver' | 'released' | 'lost'
> {
  readonly timer: Timer;
  readonly requests: RequestObserver;
}

/** A scheduler and a worker for a warm-up, over a log that keeps nothing. */
export class WarmUpStage {
  readonly #scheduler: Scheduler;
  readonly #worker: Worker;
  readonly #early: EarlyStarts;
  readonly #ending = new AbortController();
  readonly #following: readonly Promise<void>[];

  /** Starts at once. @param events of tasks, the whole content of the log */
  constructor(options: StageOptions, events: readonly RecordedEvent[], calls: StageCalls) {
    const { store: real, tools, clock, hold, membership, runPipeline } = options;
    const { timer, requests, ...executorCalls } = calls;
    // V8's compiled code is valid for objects of one hidden class: this log has that of the real one.
    const store = decorate(real, decorate<EventStore>(warmUpLog(real, events), {}));
    const telemetry = telemetryOver(silent.log, new Metrics({ misuse: () => {}, ofNode: false }));
    const live = new LiveStreams<TaskState, TaskEvent>(store, streams.task(''), taskFold);
    const tasks = new PinnedTasks(store, live);
    const index = new DueIndex(store, noViews, telemetry);
    const queue = new RunQueue(store, noViews, clock, telemetry);
    const shared = { store, queue, clock, telemetry, hold, membership, tasks };
    const random = Math.random;
    const executor = new RunExecutor({ ...shared, runPipeline, ...executorCalls, random });
    const isInstant = instantRuns(tasks, tools);
    this.#worker = new Worker({ ...shared, executor, slots: 1, isInstant });
    this.#early = new EarlyStarts({ ...shared, executor, worker: this.#worker, isInstant });
    const leadership = { leads: true, onChange: () => {} };
    const parts = { index, timer, leadership, name: membership.id, requests, early: this.#early };
    this.#scheduler = createScheduler({ ...shared, ...parts });
    const { signal } = this.#ending;
    this.#following = [
      live.follow(signal, () => {}),
      index.follow(signal, () => this.#scheduler.start()),
    ];
    this.#worker.start();
  }

  /** Resolves when all of it has stopped. */
  async end(): Promise<void> {
    await this.#scheduler.stop();
    this.#early.beginAll();
    await this.#worker.drain(0);
    this.#ending.abort();
    await Promise.all(this.#following);
  }
}

/** Everything comes from the log. */
const noViews: ReadableViews = {
  checkpoint: async () => {
    throw new ReadModelError('NO_VIEW', 'a warm-up has no views');
  },
  landmark: async () => null,
  find: async () => [],
};
