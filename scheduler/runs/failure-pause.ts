import type { Clock } from '../../domain/clock.ts';
import { type EventStore, type Position } from '../../domain/event-store.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { pauseAfterFailuresCommand } from '../../domain/tasks/task-commands.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { QueuedRun } from './run-queue.ts';

/** How long the view of runs may take to show the run that failed. Milliseconds. */
const PATIENCE = 2000;
const LOOK_EVERY = 20;

/**
 * Pauses a task whose last `pause_after_failures` runs have all failed, since somebody last changed it. Asked after
 * each failed run, by the worker that led it, or that ended it as its workers were gone: should it die before the pause
 * is written, the next failure writes it. Tasks without the setting cost nothing.
 */
export class FailurePause {
  private readonly store: EventStore;
  private readonly readModel: ReadModel;
  private readonly tasks: PinnedTasks;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly name: string;
  private readonly underWay = new Set<Promise<void>>();

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly tasks: PinnedTasks;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    /** Of this process, in the metadata. */
    readonly name: string;
  }) {
    this.store = options.store;
    this.readModel = options.readModel;
    this.tasks = options.tasks;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
    this.name = options.name;
  }

  /** A run has been led as far as it went here. */
  after(run: QueuedRun, task: LiveTask): void {
    if (run.ended) this.afterEnd(run, task);
  }

  /** A run has ended, though the queue here may not have heard of it. */
  afterEnd(run: Pick<QueuedRun, 'id' | 'taskId'>, task: LiveTask): void {
    if (task.definition.pause_after_failures === null) return;
    const looking = this.look(run).catch((error: unknown) => {
      this.telemetry.log.warn(
        'could not see whether a task fails too often; its next failure tells',
        {
          task: run.taskId,
          error,
        },
      );
    });
    this.underWay.add(looking);
    void looking.finally(() => this.underWay.delete(looking));
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.underWay);
  }

  private async look(run: Pick<QueuedRun, 'id' | 'taskId'>): Promise<void> {
    const [last] = await this.store.readStream(streams.run(run.id), {
      direction: 'backwards',
      limit: 1,
    });
    if (last?.type !== 'RunFailed') return;
    const task = await this.tasks.latest(run.taskId);
    const limit = task.definition.pause_after_failures;
    if (limit === null || task.status !== 'active') return;
    await this.untilShown(last.position);
    const runs = await this.readModel.find(runsProjection, {
      filters: [
        { field: 'task_id', op: 'eq', value: run.taskId },
        { field: 'listed', op: 'eq', value: true },
        { field: 'queued_at', op: 'gte', value: task.updated_at },
        { field: 'state', op: 'in', value: ['succeeded', 'failed'] },
      ],
      sort: [{ field: 'queued_at', direction: 'descending' }],
      limit,
    });
    if (runs.length < limit || runs.some(({ document }) => document.state !== 'failed')) return;
    const now = this.clock.now();
    const { events } = await pauseAfterFailuresCommand({
      store: this.store,
      taskId: run.taskId,
      seen: task.revision,
      context: {
        commandId: newId(now),
        actor: 'service',
        source: this.name,
        correlationId: run.id,
        causationId: last.id,
        reason: `its last ${limit} runs failed`,
        now,
      },
    });
    if (events.length === 0) return;
    this.telemetry.log.warn('a task is paused, as it fails too often', { task: run.taskId, limit });
  }

  private async untilShown(position: Position): Promise<void> {
    const end = this.clock.steady() + PATIENCE;
    while (this.clock.steady() < end) {
      if ((await this.readModel.checkpoint(runsProjection)) >= position) return;
      await this.clock.sleep(LOOK_EVERY);
    }
  }
}
