import { isConflict } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { load, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { deadlineOf, retryTime, runFold, interruptRun } from '../../domain/runs/run.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Coordination } from '../coordination.ts';
import { isTemporary } from './run-ending.ts';
import type { QueuedRun } from './queued-run.ts';
import type { RunParts } from './run-work.ts';

/** The messages that report failures. */
const NOT_CHECKED = 'could not check for runs of dead workers';
const NOT_FREED = 'could not free a run of a dead worker';

/** How many runs are freed in parallel. Each waits for a commit, which takes long on a busy log. */
const CONCURRENCY = 32;

interface TakeOverOptions extends RunParts {
  readonly coordination: Coordination;
  /** Called when a run has failed here because it lost its workers too often. */
  readonly failed?: (run: QueuedRun, task: LiveTask) => void;
}

/**
 * Frees the runs of dead workers. The run's stream names its worker, and the heartbeat tells whether that worker is
 * alive. Any process may do this; the append decides.
 */
export class TakeOver {
  readonly #options: TakeOverOptions;

  constructor(options: TakeOverOptions) {
    this.#options = options;
  }

  /** Checks at once and then every third of a lease, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, membership, telemetry } = this.#options;
    while (!signal.aborted) {
      try {
        await this.pass();
        telemetry.failures.worked(NOT_CHECKED);
      } catch (error) {
        telemetry.failures.failed(NOT_CHECKED, error);
      }
      await clock.sleep(membership.lease / 3, signal).catch(() => {});
    }
  }

  /** Checks every running run once. @returns how many were freed */
  async pass(): Promise<number> {
    const { queue, telemetry } = this.#options;
    const candidates = [...queue.all()].filter(isCandidate);
    const outcomes = candidates.length === 0 ? [] : await this.#freeAbandoned(candidates);
    if (!outcomes.includes('failed')) telemetry.failures.worked(NOT_FREED);
    return outcomes.filter((outcome) => outcome === 'freed').length;
  }

  async #freeAbandoned(candidates: readonly QueuedRun[]): Promise<readonly Outcome[]> {
    // Read again, because a worker with a late heartbeat may be back.
    const alive = new Set((await this.#options.coordination.alive()).map(({ id }) => id));
    return mapInBatches(candidates, CONCURRENCY, async (run) =>
      this.#isAbandoned(run, alive) ? this.#tryToFree(run) : 'kept',
    );
  }

  #isAbandoned(run: QueuedRun, alive: ReadonlySet<string>): boolean {
    const { membership } = this.#options;
    if (run.owner === null || run.taken || run.ended) return false;
    // Its start was written by this process, but the response was lost.
    if (run.owner === membership.id) return true;
    if (alive.has(run.owner) || membership.isAlive(run.owner)) return false;
    return membership.canDeclareOthersDead;
  }

  /** An unreadable run does not prevent the release of others. @throws EventStoreError while the log is unavailable */
  async #tryToFree(run: QueuedRun): Promise<Outcome> {
    try {
      return (await this.#free(run)) ? 'freed' : 'kept';
    } catch (error) {
      if (isTemporary(error)) throw error;
      this.#options.telemetry.failures.failed(NOT_FREED, error, { run: run.id });
      return 'failed';
    }
  }

  async #free(run: QueuedRun): Promise<boolean> {
    const { owner } = run;
    if (owner === null) return false;
    const { membership, telemetry, failed } = this.#options;
    const freed = await freeRun({ ...this.#options, source: membership.id }, { ...run, owner });
    if (freed === null) return false;
    telemetry.count('runs_taken_over_total');
    telemetry.log.info('freed a run of a dead worker', { run: run.id, worker: owner });
    if (freed.event.type === 'RunFailed') failed?.(run, freed.task);
    return true;
  }
}

/** What has become of a run. */
type Outcome = 'freed' | 'kept' | 'failed';

const isCandidate = (run: QueuedRun): boolean =>
  run.state === 'running' && !run.taken && run.owner !== null;

/** A run whose worker is dead. */
export interface AbandonedRun extends Pick<QueuedRun, 'id' | 'taskId' | 'taskRevision'> {
  /** The worker. */
  readonly owner: string;
  /** The revision of its last known event. */
  readonly revision: number;
}

/** A run that was taken from its worker. */
export interface FreedRun {
  /** The last event that was appended. */
  readonly event: RunEvent;
  /** The task at the revision to which the run is pinned. */
  readonly task: LiveTask;
}

/**
 * Takes a run from a dead worker. The run continues elsewhere, or fails if it has lost its worker too often.
 *
 * @returns null when that worker no longer has it
 * @throws EventStoreError except lost races; RefusalError `NOT_FOUND` for its task
 */
export async function freeRun(
  parts: Pick<RunParts, 'store' | 'tasks' | 'clock'> & {
    /** This process, in the metadata. */
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
  const events = interruptRun(state, now, retryAt, definition.payload as JsonObject);
  const event = events.at(-1);
  if (event === undefined) return null;
  const { namespace } = task;
  const context = { actor: 'service', source, correlationId: run.id, namespace, now };
  try {
    const newEvents = toNewEvents(stream, events, { ...context, commandId: newId(now) });
    await store.append(stream, newEvents, revision);
  } catch (error) {
    if (isConflict(error)) return null; // another process was faster
    throw error;
  }
  return { event, task };
}
