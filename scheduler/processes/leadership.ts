import { setMaxListeners } from 'node:events';
import type { Clock, Instant } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';

/**
 * Keeps one of many processes doing a piece of work. Nothing depends on it but work done twice: whoever
 * believes to lead still decides by appending with an expected revision.
 */
export class Leadership {
  private readonly coordination: Coordination;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly name: string;
  private readonly owner: string;
  private readonly lease: number;
  private heldUntil: Instant = Number.NEGATIVE_INFINITY;
  private currentFence = 0;
  private led = false;
  private readonly listeners = new Set<() => void>();

  constructor(options: {
    /** What is led. */
    readonly name: string;
    readonly owner: string;
    /** Milliseconds. */
    readonly lease: number;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.name = options.name;
    this.owner = options.owner;
    this.lease = options.lease;
    this.coordination = options.coordination;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
  }

  get leads(): boolean {
    return this.clock.now() < this.heldUntil;
  }

  /** Of the lease that is (or was last) held. */
  get fence(): number {
    return this.currentFence;
  }

  /** Calls back when leadership is won, lost, or won anew after it had run out unseen, until {@link offChange}. */
  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  offChange(listener: () => void): void {
    this.listeners.delete(listener);
  }

  /** Resolves once this one leads, or when the signal is aborted. */
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
   * Does something by the lease as it is now. What it is given is aborted once that is lost, or won anew with another
   * fence, when the signal is aborted, and when the work has ended or failed; it may abort it itself.
   */
  async whileLeading(
    signal: AbortSignal,
    work: (ending: AbortController, fence: number) => Promise<void>,
  ): Promise<void> {
    const { fence } = this;
    const ending = new AbortController();
    // A whole projector listens, with each of its views: that is no leak.
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

  /** Tries for the lease, and renews it at a third, until the signal is aborted; then gives it back. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.renew();
      await this.clock.sleep(this.lease / 3, signal).catch(() => {});
    }
    this.heldUntil = Number.NEGATIVE_INFINITY;
    await this.coordination.release(this.name, this.owner).catch((error: unknown) => {
      this.telemetry.log.warn('a lease could not be given back; it runs out by itself', { error });
    });
  }

  private async renew(): Promise<void> {
    const asked = this.clock.now();
    const { fence, heldUntil } = this;
    try {
      const lease = await this.coordination.acquire(this.name, this.owner, this.lease);
      this.heldUntil = lease === null ? Number.NEGATIVE_INFINITY : asked + this.lease;
      this.currentFence = lease?.fence ?? this.currentFence;
    } catch (error) {
      this.telemetry.count('lease_failures_total', { lease: this.name });
      this.telemetry.log.warn('a lease could not be renewed', { lease: this.name, error });
    }
    // A larger fence: it was lost and won again unseen, while this process slept. One that had run out was nobody's
    // either, though it is the same again: who found it so waits to be told.
    const isSame = this.fence === fence && this.clock.now() < heldUntil;
    if (this.led === this.leads && (!this.led || isSame)) return;
    this.led = this.leads;
    const change = this.led ? 'won' : 'lost';
    this.telemetry.count('lease_changes_total', { lease: this.name, change });
    this.telemetry.log.info(this.led ? 'leads' : 'leads no more', { lease: this.name });
    for (const listener of this.listeners) listener();
  }
}
