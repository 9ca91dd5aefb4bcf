import type { Clock } from '../../domain/clock.ts';
import { decorated } from '../../domain/decorated.ts';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import type { TaskEvent } from '../../domain/events/catalogue.ts';
import { streams } from '../../domain/streams.ts';
import { taskFold, type TaskState } from '../../domain/tasks/task.ts';
import { telemetryOver } from '../../observability/create-telemetry.ts';
import { Metrics } from '../../observability/metrics.ts';
import { silent } from '../../observability/telemetry.ts';
import { LiveStreams } from '../../projections/reading/live-streams.ts';
import type { ReadableViews } from '../../projections/reading/load-view.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { DueIndex } from '../../scheduler/fires/due-index.ts';
import type { Hold } from '../../scheduler/hold.ts';
import { PinnedTasks } from '../../scheduler/pinned-tasks.ts';
import type { Membership } from '../../scheduler/processes/membership.ts';
import { instantRuns } from '../../scheduler/runs/instant-runs.ts';
import { RunExecutor, type ExecutorOptions } from '../../scheduler/runs/run-executor.ts';
import { RunQueue } from '../../scheduler/runs/run-queue.ts';
import type { PipelineRunner } from '../../scheduler/runs/run-work.ts';
import { Scheduler, type Timer } from '../../scheduler/scheduler.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { Worker } from '../../scheduler/worker.ts';
import { RehearsalLog } from './rehearsal-log.ts';

/** What of the real process a stage works with. */
export interface StageMeans {
  readonly store: EventStore;
  readonly tools: ToolRegistry;
  readonly clock: Clock;
  readonly hold: Hold;
  readonly membership: Membership;
  readonly runPipeline: PipelineRunner;
}

/** What else a scheduler and a worker call, which in the real process others give them. */
export interface StageCalls extends Pick<
  ExecutorOptions,
  'admit' | 'handOver' | 'released' | 'lost'
> {
  readonly timer: Timer;
  readonly onRequesting: () => () => void;
  readonly onRequested: (runId: string) => void;
}

/** A scheduler and a worker of their own, over a log that keeps nothing. */
export class RehearsalStage {
  readonly #scheduler: Scheduler;
  readonly #worker: Worker;
  readonly #ending = new AbortController();
  readonly #following: readonly Promise<void>[];

  /**
   * Begins at once.
   * @param events of tasks, all that its log holds
   */
  constructor(means: StageMeans, events: readonly RecordedEvent[], calls: StageCalls) {
    const { store, tools, clock, hold, membership, runPipeline } = means;
    const { timer, onRequesting, onRequested, ...ofExecutor } = calls;
    // What V8 compiles counts for objects of the same form: the log of a rehearsal has that of the real one.
    const log = decorated(store, decorated<EventStore>(new RehearsalLog(store, events), {}));
    const telemetry = telemetryOver(silent.log, new Metrics({ misuse: () => {}, ofNode: false }));
    const live = new LiveStreams<TaskState, TaskEvent>(log, streams.task(''), taskFold);
    const tasks = new PinnedTasks(log, live);
    const index = new DueIndex(log, noViews, telemetry);
    const shared = { store: log, clock, telemetry, hold, membership, tasks };
    const leadership = { leads: true, onChange: () => {} };
    const scheduler = new Scheduler({ ...shared, index, timer, leadership, name: membership.id });
    const queue = new RunQueue(log, noViews, clock, telemetry);
    const own = { ...ofExecutor, random: Math.random };
    const executor = new RunExecutor({ ...shared, queue, runPipeline, ...own });
    const isInstant = instantRuns(tasks, tools);
    const worker = new Worker({ ...shared, queue, executor, slots: 1, isInstant });
    scheduler.writer.early = worker.early;
    scheduler.writer.onRequesting = onRequesting;
    scheduler.writer.onRequested = onRequested;
    scheduler.onSoon = (taskId, revision) => tasks.prepare(taskId, revision);
    const { signal } = this.#ending;
    this.#following = [
      live.follow(signal, () => {}),
      index.follow(signal, () => scheduler.start()),
    ];
    worker.start();
    this.#scheduler = scheduler;
    this.#worker = worker;
  }

  /** Resolves when nothing of it goes on. */
  async end(): Promise<void> {
    await this.#scheduler.stop();
    await this.#worker.drain(0);
    this.#ending.abort();
    await Promise.all(this.#following);
  }
}

/** All comes from the log. */
const noViews: ReadableViews = {
  checkpoint: async () => {
    throw new ReadModelError('NO_VIEW', 'a rehearsal has no views');
  },
  landmark: async () => null,
  find: async () => [],
};
