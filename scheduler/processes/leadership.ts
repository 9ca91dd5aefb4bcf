import { setMaxListeners } from 'node:events';
import type { Clock, Instant } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';

/**
 * Keeps a piece of work to one of many processes, by a lease. Only duplicate work depends on it: a process that wrongly
 * believes that it is the leader still appends its decisions at an expected revision.
 */
export class Leadership {
  readonly #options: ConstructorParameters<typeof Leadership>[0];
  #heldUntil: Instant = Number.NEGATIVE_INFINITY;
  #fence = 0;
  #wasLeading = false;
  readonly #listeners = new Set<() => void>();

  constructor(options: {
    /** The name of the lease. */
    readonly name: string;
    readonly owner: string;
    /** Milliseconds. */
    readonly lease: number;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.#options = options;
  }

  get leads(): boolean {
    return this.#options.clock.now() < this.#heldUntil;
  }

  /** The fence of the lease that is held, or was last held. */
  get fence(): number {
    return this.#fence;
  }

  /** Calls back when leadership is won, lost, or won again after an unnoticed loss, until {@link offChange}. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  offChange(listener: () => void): void {
    this.#listeners.delete(listener);
  }

  /** Resolves once this process is the leader, or the signal is aborted. */
  untilLeading(signal: AbortSignal): Promise<void> {
    if (this.leads || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        if (!this.leads && !signal.aborted) return;
        this.offChange(settle);
        signal.removeEventListener('abort', settle);
        resolve();
      };
      this.onChange(settle);
      signal.addEventListener('abort', settle);
    });
  }

  /**
   * Does work under the present lease. `ending` is aborted once the lease is lost or won again with another fence, when
   * the signal is aborted, and when the work ends; the work may abort it too.
   */
  async whileLeading(
    signal: AbortSignal,
    work: (ending: AbortController, fence: number) => Promise<void>,
  ): Promise<void> {
    const { fence } = this;
    const ending = new AbortController();
    // A projector adds a listener for each view; this is not a leak.
    setMaxListeners(0, ending.signal);
    const end = (): void => ending.abort();
    const endUnlessLeading = (): void => {
      if (!this.leads || this.fence !== fence || signal.aborted) end();
    };
    this.onChange(endUnlessLeading);
    signal.addEventListener('abort', end, { once: true });
    endUnlessLeading();
    try {
      await work(ending, fence);
    } finally {
      end();
      this.offChange(endUnlessLeading);
      signal.removeEventListener('abort', end);
    }
  }

  /** Acquires the lease, and renews it every third of its time, until the signal is aborted; then releases it. */
  async run(signal: AbortSignal): Promise<void> {
    const { name, owner, lease, coordination, clock, telemetry } = this.#options;
    while (!signal.aborted) {
      await this.#renew();
      await clock.sleep(lease / 3, signal).catch(() => {});
    }
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    await coordination.release(name, owner).catch((error: unknown) => {
      telemetry.failures.failed('could not release a lease; it expires by itself', error);
    });
  }

  async #renew(): Promise<void> {
    const { name, owner, lease, coordination, clock, telemetry } = this.#options;
    const failure = `could not renew the lease ${name}`;
    const asked = clock.now();
    const fence = this.#fence;
    const heldUntil = this.#heldUntil;
    try {
      const acquired = await coordination.acquire(name, owner, lease);
      this.#heldUntil = acquired === null ? Number.NEGATIVE_INFINITY : asked + lease;
      this.#fence = acquired?.fence ?? this.#fence;
      telemetry.failures.worked(failure);
    } catch (error) {
      telemetry.count('lease_failures_total', { lease: name });
      telemetry.failures.failed(failure, error);
    }
    // The lease may have been lost unnoticed while this process slept. Another fence, or an
    // interval without a lease, shows that.
    const isSame = this.#fence === fence && clock.now() < heldUntil;
    if (this.#wasLeading === this.leads && (!this.#wasLeading || isSame)) return;
    this.#wasLeading = this.leads;
    const change = this.#wasLeading ? 'won' : 'lost';
    telemetry.count('lease_changes_total', { lease: name, change });
    telemetry.log.info(`leadership ${change}`, { lease: name });
    for (const listener of this.#listeners) listener();
  }
}
