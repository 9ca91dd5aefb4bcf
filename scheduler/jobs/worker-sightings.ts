import type { Cancel, Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { JobLeases } from '../coordination.ts';

/** The message that reports a failure. */
const FAILURE = 'could not record which workers were heard of';

/** The interval of writes that say which workers were heard of. Milliseconds. */
const WRITE_INTERVAL = 5_000;

/**
 * When each worker was last heard of, shared by all processes. A worker counts as heard of as long as it waits for
 * jobs.
 */
export class WorkerSightings {
  readonly #leases: JobLeases;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  /** Workers that wait for jobs, with the number of their requests. */
  readonly #waiting = new Map<string, number>();
  /** Workers heard of since the last write. */
  readonly #heard = new Set<string>();
  #cancel: Cancel | null = null;
  #stopped = false;

  constructor(leases: JobLeases, clock: Clock, telemetry: Telemetry) {
    this.#leases = leases;
    this.#clock = clock;
    this.#telemetry = telemetry;
  }

  note(worker: string): void {
    this.#heard.add(worker);
    this.#arm();
  }

  /** Notes that the worker waits for jobs. @returns a function that ends that */
  wait(worker: string): () => void {
    this.note(worker);
    this.#waiting.set(worker, (this.#waiting.get(worker) ?? 0) + 1);
    return () => {
      const left = (this.#waiting.get(worker) ?? 1) - 1;
      if (left > 0) this.#waiting.set(worker, left);
      else this.#waiting.delete(worker);
      this.note(worker);
    };
  }

  /** Milliseconds since each worker was heard of. @throws CoordinationError */
  async ago(): Promise<ReadonlyMap<string, number>> {
    const ago = new Map(await this.#leases.seen());
    for (const worker of [...this.#heard, ...this.#waiting.keys()]) ago.set(worker, 0);
    return ago;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  #arm(): void {
    if (this.#stopped || this.#cancel !== null) return;
    const write = (): void => void this.#write();
    this.#cancel = this.#clock.after(WRITE_INTERVAL, write, { background: true });
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const workers = new Set([...this.#heard, ...this.#waiting.keys()]);
    this.#heard.clear();
    try {
      await this.#leases.see([...workers]);
      this.#telemetry.failures.worked(FAILURE);
    } catch (error) {
      this.#telemetry.failures.failed(FAILURE, error);
    }
    this.#cancel = null;
    if (this.#heard.size > 0 || this.#waiting.size > 0) this.#arm();
  }
}
