import type { Clock } from '../domain/clock.ts';
import { isConflict, type EventStore } from '../domain/event-store.ts';
import { load, toNewEvents } from '../domain/handle.ts';
import { newId } from '../domain/ids.ts';
import { retryTime, runFold, takeOver } from '../domain/run.ts';
import { streams } from '../domain/streams.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { Coordination } from './coordination.ts';
import type { Membership } from './membership.ts';
import type { PinnedTasks } from './pinned-tasks.ts';
import { isPassing } from './run-outcome.ts';
import type { QueuedRun, RunQueue } from './run-queue.ts';

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

  constructor(options: {
    readonly store: EventStore;
    readonly queue: RunQueue;
    readonly tasks: PinnedTasks;
    readonly membership: Membership;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.store = options.store;
    this.queue = options.queue;
    this.tasks = options.tasks;
    this.membership = options.membership;
    this.coordination = options.coordination;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
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
    let freed = 0;
    for (const run of suspects) {
      if (run.owner === null || run.taken || run.ended) continue;
      // One's own that one does not work on: its start was written though the answer was lost.
      const own = run.owner === this.membership.id;
      if (!own && (alive.has(run.owner) || this.membership.isAlive(run.owner))) continue;
      if (!own && !this.membership.canTell) continue;
      if (await this.freeOrTell(run)) freed += 1;
    }
    return freed;
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
    const stream = streams.run(run.id);
    const { state, revision } = await load(this.store, stream, runFold);
    if (state.state !== 'running' || state.lease_owner !== run.owner) return false;
    const now = this.clock.now();
    const task = await this.tasks.at(run.taskId, run.taskRevision);
    const retryAt = retryTime(state.attempt, task.definition, now, Math.random);
    const events = takeOver(state, now, retryAt);
    if (events.length === 0) return false;
    const context = {
      commandId: newId(now),
      actor: 'service',
      source: this.membership.id,
      correlationId: run.id,
      now,
    };
    try {
      await this.store.append(stream, toNewEvents(stream, events, context), revision);
    } catch (error) {
      if (isConflict(error)) return false; // somebody else was faster
      throw error;
    }
    this.telemetry.count('runs_taken_over_total');
    this.telemetry.log.info('a run of a worker that is gone is freed', {
      run: run.id,
      worker: run.owner,
    });
    return true;
  }
}
