import type { Position } from '../../domain/event-store.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { pauseAfterFailuresCommand } from '../../domain/tasks/task-commands.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import type { QueuedRun } from './queued-run.ts';
import type { RunParts } from './run-work.ts';

/** The message that reports a failure. */
const FAILURE = 'could not check the failure limit; retrying at the next failure';

/** The longest wait for the failed run to appear in the view of runs, and the interval of checks. Milliseconds. */
const VIEW_TIMEOUT = 2000;
const POLL_INTERVAL = 20;

interface FailurePauseOptions extends Pick<RunParts, 'store' | 'tasks' | 'clock' | 'telemetry'> {
  readonly readModel: ReadModel;
  /** Name of this process, for the metadata. */
  readonly name: string;
}

/**
 * Pauses a task whose last `pause_after_failures` runs have all failed since it was last changed. The worker that ended
 * the failed run checks this. If that worker dies before it writes the pause, the next failure triggers the check
 * again.
 */
export class FailurePause {
  readonly #options: FailurePauseOptions;
  readonly #checks = new Set<Promise<void>>();

  constructor(options: FailurePauseOptions) {
    this.#options = options;
  }

  /** Checks the task of a run, if the run has ended. */
  after(run: QueuedRun, task: LiveTask): void {
    if (run.ended) this.afterEnd(run, task);
  }

  /** Checks the task of an ended run, which the queue may not know yet. */
  afterEnd(run: Pick<QueuedRun, 'id' | 'taskId'>, task: LiveTask): void {
    if (task.definition.pause_after_failures === null) return;
    const { failures } = this.#options.telemetry;
    const checking = this.#check(run).then(
      () => failures.worked(FAILURE),
      (error: unknown) => failures.failed(FAILURE, error, { task: run.taskId }),
    );
    this.#checks.add(checking);
    void checking.finally(() => this.#checks.delete(checking));
  }

  /** Resolves when no check is running. */
  async settled(): Promise<void> {
    await Promise.all(this.#checks);
  }

  async #check(run: Pick<QueuedRun, 'id' | 'taskId'>): Promise<void> {
    const { store, readModel, tasks, clock, telemetry, name } = this.#options;
    const newest = { direction: 'backwards', limit: 1 } as const;
    const [last] = await store.readStream(streams.run(run.id), newest);
    if (last?.type !== 'RunFailed') return;
    const task = await tasks.latest(run.taskId);
    const limit = task.definition.pause_after_failures;
    if (limit === null || task.status !== 'active') return;
    await this.#waitForView(last.position);
    const runs = await readModel.find(runsProjection, {
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
    const now = clock.now();
    const { events } = await pauseAfterFailuresCommand({
      store,
      taskId: run.taskId,
      seen: task.revision,
      context: {
        commandId: newId(now),
        actor: 'service',
        source: name,
        correlationId: run.id,
        causationId: last.id,
        reason: `its last ${limit} runs failed`,
        now,
      },
    });
    if (events.length === 0) return;
    telemetry.log.warn('task paused, its failure limit is reached', { task: run.taskId, limit });
  }

  async #waitForView(position: Position): Promise<void> {
    const { readModel, clock } = this.#options;
    const end = clock.steady() + VIEW_TIMEOUT;
    while (clock.steady() < end) {
      if ((await readModel.checkpoint(runsProjection)) >= position) return;
      await clock.sleep(POLL_INTERVAL);
    }
  }
}
