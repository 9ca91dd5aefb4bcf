import type { Clock } from '../../domain/clock.ts';
import { RefusalError } from '../../domain/errors.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import { handle } from '../../domain/handle.ts';
import { timeBasedId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import { removeWorker, workerFold, type RegisteredWorker } from '../../domain/workers/worker.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { WorkerDirectory } from '../../projections/reading/worker-directory.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';

/** The message that reports a failure. */
const FAILURE = 'could not remove silent workers; retrying';

/** A worker is removed after it has been silent for this many milliseconds. */
const MAX_SILENCE = 86_400_000;

/** Milliseconds between two passes. */
const PASS_INTERVAL = 600_000;

export interface SilentWorkersOptions {
  readonly store: EventStore;
  readonly coordination: Pick<Coordination, 'jobs'>;
  readonly directory: Pick<WorkerDirectory, 'workers'>;
  readonly leadership: Pick<Leadership, 'leads'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Name of this process. */
  readonly name: string;
}

/** Removes workers that have been silent for a day. One that comes back registers again. */
export class SilentWorkers {
  readonly #options: SilentWorkersOptions;
  /**
   * When a worker was first missing in the coordination store, on the steady clock. The store may have lost the time
   * when it was last heard of.
   */
  readonly #watchedSince: number;

  constructor(options: SilentWorkersOptions) {
    this.#options = options;
    this.#watchedSince = options.clock.steady();
  }

  /** Makes passes while this process leads, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, leadership, telemetry } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(PASS_INTERVAL, signal).catch(() => {});
      if (signal.aborted || !leadership.leads) continue;
      try {
        await this.pass();
        telemetry.failures.worked(FAILURE);
      } catch (error) {
        telemetry.failures.failed(FAILURE, error);
      }
    }
  }

  /** @throws CoordinationError, EventStoreError */
  async pass(): Promise<void> {
    const { coordination, directory } = this.#options;
    const ago = await coordination.jobs.seen();
    for (const worker of [...directory.workers()]) {
      if (worker.state !== 'active') continue;
      const silence = ago.get(worker.id) ?? this.#silenceOf(worker);
      if (silence > MAX_SILENCE) await this.#remove(worker);
    }
  }

  /** The least time for which a worker has been silent that the coordination store does not know. */
  #silenceOf({ registered_at }: RegisteredWorker): number {
    const { clock } = this.#options;
    const registered = clock.now() - Date.parse(registered_at);
    return Math.min(registered, clock.steady() - this.#watchedSince);
  }

  async #remove({ id, agent_id, name }: RegisteredWorker): Promise<void> {
    const { store, clock, telemetry } = this.#options;
    const now = clock.now();
    const commandId = timeBasedId(now, 'remove silent worker', id);
    const source = this.#options.name;
    try {
      await handle({
        store,
        stream: streams.worker(agent_id, name),
        fold: workerFold,
        decide: (state) => removeWorker(state, id, 'silent'),
        context: { commandId, actor: 'service', source, correlationId: id, now },
      });
      telemetry.log.info('removed a worker, silent for a day', { worker: id, name });
    } catch (error) {
      // It has registered again in the meantime, or another process has removed it.
      if (!(error instanceof RefusalError) && !isConflict(error)) throw error;
    }
  }
}
