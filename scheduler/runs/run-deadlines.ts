import { toIso, type Cancel, type Clock } from '../../domain/clock.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import { load, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { runFold, timeOut } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { TransientMap } from '../../domain/transient-map.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { Membership } from '../processes/membership.ts';
import { prefers } from './preference.ts';
import { tellEnd } from './run-outcome.ts';
import type { QueuedRun, RunQueue } from './run-queue.ts';

/** An end that another worker is the first choice for is left to it for this long. Milliseconds. */
const HOLD_BACK = 75;

/** What could not be done is tried again after this long. Milliseconds. */
const AGAIN = 1000;

/**
 * Ends runs in time that have started before and wait to go on: for a key, for a worker's slot, for the next attempt. A run
 * that is executed is ended by its execution. Each worker has a timer for each such run of a task with `timeout_seconds`;
 * the append, which expects the run as it was read, decides who ends it, or whether it has gone on in that moment.
 */
export class RunDeadlines {
  private readonly store: EventStore;
  private readonly tasks: PinnedTasks;
  private readonly membership: Membership;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly failed: (run: QueuedRun, task: LiveTask) => void;
  private readonly timers = new TransientMap<string, Cancel>();
  private readonly underWay = new Set<Promise<void>>();
  private stopped = false;

  constructor(options: {
    readonly store: EventStore;
    readonly queue: RunQueue;
    readonly tasks: PinnedTasks;
    readonly membership: Membership;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    /** A run has failed here, as its time was over; default: nobody is told. */
    readonly failed?: (run: QueuedRun, task: LiveTask) => void;
  }) {
    this.store = options.store;
    this.tasks = options.tasks;
    this.membership = options.membership;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
    this.failed = options.failed ?? (() => {});
    options.queue.onBegun = (run) => this.look(run);
  }

  /** Ends nothing more. Resolves when nothing is under way. Never rejects. */
  async stop(): Promise<void> {
    this.stopped = true;
    for (const cancel of this.timers.values()) cancel();
    await Promise.all(this.underWay);
  }

  private look(run: QueuedRun): void {
    this.timers.get(run.id)?.();
    this.timers.delete(run.id);
    if (!waits(run)) return;
    const task = this.tasks.peek(run.taskId, run.taskRevision);
    if (task !== undefined) {
      this.arm(run, task);
      return;
    }
    // No back-off goes beyond the end: by its turn the task is mostly at hand.
    this.later(run, Math.max(0, run.runAt - this.clock.now()), async () => {
      this.arm(run, await this.tasks.at(run.taskId, run.taskRevision));
    });
  }

  private arm(run: QueuedRun, { definition }: LiveTask): void {
    const limit = definition.timeout_seconds;
    if (limit === null || run.startedAt === null) return;
    // However the clock is set from now on; where it was put back since the first start, no more than the whole.
    const left = Math.min(run.startedAt + limit * 1000 - this.clock.now(), limit * 1000);
    this.later(run, Math.max(0, left), async () => {
      if (this.isMine(run)) await this.end(run, limit);
      else this.later(run, HOLD_BACK, () => this.end(run, limit));
    });
  }

  /** Does something for a run that waits then still, and again where it fails. */
  private later(run: QueuedRun, milliseconds: number, work: () => Promise<void>): void {
    if (this.stopped) return;
    const cancel = this.clock.after(milliseconds, () => {
      this.timers.delete(run.id);
      if (!waits(run)) return;
      const doing = work().catch((error: unknown) => {
        const message = 'a run whose time is over could not be ended; trying again';
        this.telemetry.log.warn(message, { run: run.id, error });
        if (waits(run)) this.later(run, AGAIN, work);
      });
      this.underWay.add(doing);
      void doing.finally(() => this.underWay.delete(doing));
    });
    this.timers.set(run.id, cancel);
  }

  private async end(run: QueuedRun, limit: number): Promise<void> {
    const { store, clock, membership, telemetry } = this;
    const stream = streams.run(run.id);
    const task = await this.tasks.at(run.taskId, run.taskRevision);
    const { state, revision } = await load(store, stream, runFold);
    const [event] = timeOut(state, limit, task.definition.payload as JsonObject);
    if (event === undefined) return;
    const now = clock.now();
    const base = { actor: 'service', source: membership.id, correlationId: run.id, now };
    try {
      const made = toNewEvents(stream, [event], { ...base, commandId: newId(now) });
      await store.append(stream, made, revision);
    } catch (error) {
      // Somebody has ended it, or goes on with it and ends it then.
      if (isConflict(error)) return;
      throw error;
    }
    tellEnd({ telemetry, clock }, event, toIso(run.startedAt ?? now));
    this.failed(run, task);
  }

  private isMine({ id }: QueuedRun): boolean {
    const workers = this.membership.doing('worker');
    return workers.length < 2 || prefers(id, workers) === this.membership.id;
  }
}

/** Whether a run has started before and is not executed now. */
function waits({ ended, state, startedAt }: QueuedRun): boolean {
  return !ended && state !== 'running' && startedAt !== null;
}
