import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';

/** The message that reports a failure. */
const FAILURE = 'could not renew an extension lease';

/** How long a lease lasts without renewal, and how often it is renewed. Milliseconds. */
const LEASE_MS = 10_000;
const RENEW_INTERVAL_MS = 3_000;

/**
 * How long stopped work is waited for, in milliseconds. Less than the rest of a lease that was not
 * renewed.
 */
const STOP_TIMEOUT_MS = 2_000;

/** Work that runs while this process holds the lease. */
export interface WorkItem {
  /** Its name in the status. Only one item with the same label runs at a time. */
  readonly label: string;
  /** Ends when the signal is aborted or the work is done. Never rejects. */
  run(signal: AbortSignal, fence: number): Promise<void>;
}

export interface LeasedWorkOptions {
  readonly extensionId: string;
  readonly owner: string;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Called for an item that still runs two seconds after it was stopped. */
  readonly onOverrun: (item: WorkItem, ended: Promise<void>) => void;
}

interface RunningItem {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** The background work of an extension. It runs in the process that holds the extension's lease. */
export class LeasedWork {
  /** Name of the lease. */
  readonly name: string;
  readonly #options: LeasedWorkOptions;
  readonly #items = new Map<WorkItem, RunningItem | null>();
  /** By label: resolves when all earlier runs have ended. The next run waits for it. */
  readonly #lastRuns = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();
  #fence: number | null = null;
  #renewedAt = 0;
  #renewals: Promise<void> | null = null;

  constructor(options: LeasedWorkOptions) {
    this.name = `extension ${options.extensionId}`;
    this.#options = options;
  }

  get isLeaseHolder(): boolean {
    return this.#fence !== null;
  }

  /** Whether no work was ever added, so no lease was requested. */
  get isUnused(): boolean {
    return this.#renewals === null;
  }

  /** Starts an item at once if this process holds the lease, else when it acquires it. */
  add(item: WorkItem): void {
    this.#items.set(item, this.#fence === null ? null : this.#start(item, this.#fence));
    this.#renewals ??= this.#keepLease();
  }

  /** Stops an item. Resolves when it has ended, or after two seconds. */
  async remove(item: WorkItem): Promise<void> {
    const running = this.#items.get(item);
    this.#items.delete(item);
    if (running !== null && running !== undefined) await this.#stop(item, running);
  }

  /** Stops all items and releases the lease. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#renewals;
    if (this.#fence === null) return;
    await this.#stopAll();
    await this.#options.coordination.release(this.name, this.#options.owner);
  }

  async #keepLease(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#renew();
      await this.#options.clock.sleep(RENEW_INTERVAL_MS, signal).catch(() => {});
    }
  }

  async #renew(): Promise<void> {
    const { coordination, clock, telemetry, owner } = this.#options;
    try {
      const lease = await coordination.acquire(this.name, owner, LEASE_MS);
      telemetry.failures.worked(FAILURE);
      if (lease?.fence === this.#fence) {
        this.#renewedAt = clock.steady();
        return;
      }
      if (this.#fence !== null) await this.#stopAll();
      if (lease === null || this.#closing.signal.aborted) return;
      this.#renewedAt = clock.steady();
      this.#fence = lease.fence;
      for (const item of this.#items.keys()) this.#items.set(item, this.#start(item, lease.fence));
    } catch (error) {
      telemetry.failures.failed(FAILURE, error, { lease: this.name });
      const isExpiring = clock.steady() - this.#renewedAt > LEASE_MS - RENEW_INTERVAL_MS;
      if (this.#fence !== null && isExpiring) await this.#stopAll();
    }
  }

  #start(item: WorkItem, fence: number): RunningItem {
    const stop = new AbortController();
    const previous = this.#lastRuns.get(item.label);
    const ended = this.#run(item, previous, stop.signal, fence);
    const last = Promise.all([previous, ended]).then(() => {
      if (this.#lastRuns.get(item.label) === last) this.#lastRuns.delete(item.label);
    });
    this.#lastRuns.set(item.label, last);
    return { stop, ended };
  }

  async #run(
    item: WorkItem,
    previous: Promise<void> | undefined,
    signal: AbortSignal,
    fence: number,
  ): Promise<void> {
    // An earlier run may outlive a lost lease or a stop. Both would then run at once.
    if (previous !== undefined) await Promise.race([previous, aborted(signal)]);
    if (!signal.aborted) await item.run(signal, fence);
  }

  async #stopAll(): Promise<void> {
    this.#fence = null;
    const all = [...this.#items];
    for (const [item] of all) this.#items.set(item, null);
    await Promise.all(
      all.map(async ([item, running]) => {
        if (running !== null) await this.#stop(item, running);
      }),
    );
  }

  async #stop(item: WorkItem, { stop, ended }: RunningItem): Promise<void> {
    stop.abort();
    const wake = new AbortController();
    const end = ended.finally(() => wake.abort());
    await this.#options.clock.sleep(STOP_TIMEOUT_MS, wake.signal).catch(() => {});
    if (wake.signal.aborted) await end;
    else this.#options.onOverrun(item, end);
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
