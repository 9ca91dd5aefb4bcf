import { toIso, type Cancel } from '../../domain/clock.ts';
import { isConflict } from '../../domain/event-store.ts';
import { load, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { runFold, timeOutRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { isPreferred } from './preferred-worker.ts';
import { recordEnd } from './run-ending.ts';
import type { QueuedRun } from './run-queue.ts';
import type { RunParts } from './run-work.ts';

/** How long this process waits for the preferred worker to end a run. Milliseconds. */
const HOLD_BACK = 75;

/** Milliseconds before a failed attempt is repeated. */
const RETRY_AFTER = 1000;

interface RunDeadlinesOptions extends RunParts {
  /** Called when a run has failed here because it timed out. */
  readonly failed?: (run: QueuedRun, task: LiveTask) => void;
}

/**
 * Ends runs at their deadline that have started before and are waiting: for a key, a slot or their next attempt. A
 * running run is ended by its execution. Each worker has a timer for each such run; the append decides which one ends it.
 */
export class RunDeadlines {
  readonly #options: RunDeadlinesOptions;
  readonly #timers = new Map<string, Cancel>();
  readonly #running = new Set<Promise<void>>();
  #stopped = false;

  constructor(options: RunDeadlinesOptions) {
    this.#options = options;
    options.queue.subscribe({ onStarted: (run) => this.#update(run) });
  }

  /** Ends no more runs. Resolves when nothing is being written. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#timers.values()) cancel();
    await Promise.all(this.#running);
  }

  #update(run: QueuedRun): void {
    const { tasks, clock } = this.#options;
    this.#timers.get(run.id)?.();
    this.#timers.delete(run.id);
    if (!isWaiting(run)) return;
    const task = tasks.peek(run.taskId, run.taskRevision);
    if (task !== undefined) {
      this.#arm(run, task);
      return;
    }
    // No back-off exceeds the deadline, and by then the task is mostly in memory.
    this.#schedule(run, Math.max(0, run.runAt - clock.now()), async () => {
      this.#arm(run, await tasks.at(run.taskId, run.taskRevision));
    });
  }

  #arm(run: QueuedRun, { definition }: LiveTask): void {
    const { clock, membership } = this.#options;
    const limit = definition.timeout_seconds;
    if (limit === null || run.startedAt === null) return;
    // If the clock was set back since the first start, at most the whole limit.
    const left = Math.min(run.startedAt + limit * 1000 - clock.now(), limit * 1000);
    this.#schedule(run, Math.max(0, left), async () => {
      if (isPreferred(() => run.id, membership)) await this.#end(run, limit);
      else this.#schedule(run, HOLD_BACK, () => this.#end(run, limit));
    });
  }

  /** Runs work later, if the run still waits then, and repeats it if it fails. */
  #schedule(run: QueuedRun, milliseconds: number, work: () => Promise<void>): void {
    if (this.#stopped) return;
    const { clock, telemetry } = this.#options;
    const cancel = clock.after(milliseconds, () => {
      this.#timers.delete(run.id);
      if (!isWaiting(run)) return;
      const running = work().catch((error: unknown) => {
        const message = 'could not end a run that has timed out; retrying';
        telemetry.log.warn(message, { run: run.id, error });
        if (isWaiting(run)) this.#schedule(run, RETRY_AFTER, work);
      });
      this.#running.add(running);
      void running.finally(() => this.#running.delete(running));
    });
    this.#timers.set(run.id, cancel);
  }

  async #end(run: QueuedRun, limit: number): Promise<void> {
    const { store, tasks, clock, membership, failed } = this.#options;
    const stream = streams.run(run.id);
    const task = await tasks.at(run.taskId, run.taskRevision);
    const { state, revision } = await load(store, stream, runFold);
    const [event] = timeOutRun(state, limit, task.definition.payload as JsonObject);
    if (event === undefined) return;
    const now = clock.now();
    const base = { actor: 'service', source: membership.id, correlationId: run.id, now };
    try {
      const events = toNewEvents(stream, [event], { ...base, commandId: newId(now) });
      await store.append(stream, events, revision);
    } catch (error) {
      // Another process has ended or continued it.
      if (isConflict(error)) return;
      throw error;
    }
    recordEnd(this.#options, event, toIso(run.startedAt ?? now));
    failed?.(run, task);
  }
}

/** Whether a run has started before and is not executed now. */
function isWaiting({ ended, state, startedAt }: QueuedRun): boolean {
  return !ended && state !== 'running' && startedAt !== null;
}
