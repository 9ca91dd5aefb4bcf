import type { Clock } from '../../domain/clock.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { load, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { deadlineOf, retryTime, runFold, takeOver } from '../../domain/runs/run.ts';
import { sideBySide } from '../../domain/side-by-side.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';
import type { Membership } from '../processes/membership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { isPassing } from './run-outcome.ts';
import type { QueuedRun, RunQueue } from './run-queue.ts';

/** How many runs are freed side by side: each waits for a commit, which a busy log takes long for. */
const FREEING = 32;

/**
 * Frees the runs of workers that are gone: what a run's worker was is known from its stream, whether it is
 * alive from its heartbeat. Any process may do it; the append decides who did.
 */
export class TakeOver {
  private readonly store: EventStore;
  private readonly queue: RunQueue;
  private readonly tasks: PinnedTasks;
  private readonly membership: Membership;
  private readonly coordination: Coordination;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly failed: (run: QueuedRun, task: LiveTask) => void;

  constructor(options: {
    readonly store: EventStore;
    readonly queue: RunQueue;
    readonly tasks: PinnedTasks;
    readonly membership: Membership;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    /** A run has failed here, as its workers went away too often; default: nobody is told. */
    readonly failed?: (run: QueuedRun, task: LiveTask) => void;
  }) {
    this.store = options.store;
    this.queue = options.queue;
    this.tasks = options.tasks;
    this.membership = options.membership;
    this.coordination = options.coordination;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
    this.failed = options.failed ?? (() => {});
  }

  /** Looks at once and then every third of a lease, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.pass();
      } catch (error) {
        this.telemetry.log.warn('could not look for runs of workers that are gone', { error });
      }
      await this.clock.sleep(this.membership.lease / 3, signal).catch(() => {});
    }
  }

  /** One look at every running run. @returns how many were freed */
  async pass(): Promise<number> {
    const suspects = [...this.queue.all()].filter((run) => this.isSuspect(run));
    if (suspects.length === 0) return 0;
    // A fresh look: somebody who was late with a heartbeat may be back.
    const alive = new Set((await this.coordination.alive()).map(({ id }) => id));
    const freed = await sideBySide(suspects, FREEING, async (run) => {
      return this.isAbandoned(run, alive) && (await this.freeOrTell(run));
    });
    return freed.filter(Boolean).length;
  }

  private isAbandoned(run: QueuedRun, alive: ReadonlySet<string>): boolean {
    if (run.owner === null || run.taken || run.ended) return false;
    // One's own that one does not work on: its start was written though the answer was lost.
    if (run.owner === this.membership.id) return true;
    if (alive.has(run.owner) || this.membership.isAlive(run.owner)) return false;
    return this.membership.canTell;
  }

  /** One run that can't be read keeps no other from being freed; a log that is away does. */
  private async freeOrTell(run: QueuedRun): Promise<boolean> {
    try {
      return await this.free(run);
    } catch (error) {
      if (isPassing(error)) throw error;
      this.telemetry.log.warn('a run of a worker that is gone could not be freed', {
        run: run.id,
        error,
      });
      return false;
    }
  }

  private isSuspect(run: QueuedRun): boolean {
    return run.state === 'running' && !run.taken && run.owner !== null;
  }

  private async free(run: QueuedRun): Promise<boolean> {
    if (run.owner === null) return false;
    const { store, tasks, clock, membership } = this;
    const freed = await freeRun(
      { store, tasks, clock, source: membership.id },
      { ...run, owner: run.owner },
    );
    if (freed === null) return false;
    this.telemetry.count('runs_taken_over_total');
    this.telemetry.log.info('a run of a worker that is gone is freed', {
      run: run.id,
      worker: run.owner,
    });
    if (freed.event.type === 'RunFailed') this.failed(run, freed.task);
    return true;
  }
}

/** A run whose worker is gone. */
export interface AbandonedRun extends Pick<QueuedRun, 'id' | 'taskId' | 'taskRevision'> {
  /** The worker. */
  readonly owner: string;
  /** Of its last event, as far as is known. */
  readonly revision: number;
}

/** A run that was taken from its worker. */
export interface FreedRun {
  /** What was written of it. */
  readonly event: RunEvent;
  /** At the revision that it is pinned to. */
  readonly task: LiveTask;
}

/**
 * Takes a run from a worker that is gone: it goes on elsewhere, or has failed where that has happened too often.
 *
 * @returns null when it is not that worker's any more
 * @throws EventStoreError all that the log throws but a lost race; Refusal `NOT_FOUND` of its task
 */
export async function freeRun(
  parts: {
    readonly store: EventStore;
    readonly tasks: PinnedTasks;
    readonly clock: Clock;
    /** This process, as the source of what it appends. */
    readonly source: string;
  },
  run: AbandonedRun,
): Promise<FreedRun | null> {
  const { store, tasks, clock, source } = parts;
  const stream = streams.run(run.id);
  const { state, revision } = await load(store, stream, runFold);
  if (state.state !== 'running' || state.lease_owner !== run.owner) return null;
  const now = clock.now();
  const task = await tasks.at(run.taskId, run.taskRevision);
  const { definition } = task;
  const deadline = deadlineOf(state, definition.timeout_seconds);
  const retryAt = retryTime(state.attempt, definition, now, Math.random, 0, deadline);
  const events = takeOver(state, now, retryAt, definition.payload as JsonObject);
  const [event] = events;
  if (event === undefined) return null;
  const commandId = newId(now);
  const context = { commandId, actor: 'service', source, correlationId: run.id, now };
  try {
    await store.append(stream, toNewEvents(stream, events, context), revision);
  } catch (error) {
    if (isConflict(error)) return null; // somebody else was faster
    throw error;
  }
  return { event, task };
}
