import type { Cancel, Clock, Instant } from '../domain/clock.ts';
import type { RecordedEvent } from '../domain/event-store.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import { neverHeld, type HoldView } from './hold.ts';
import type { Membership } from './membership.ts';
import { prefers } from './preference.ts';
import type { RunExecutor, RunHandle } from './run-executor.ts';
import type { QueuedRun, RunQueue } from './run-queue.ts';

/** A run that another worker is the first choice for is left to it for this long. Milliseconds. */
const HOLD_BACK = 75;

/** Runs that are being started or ended and take no slot, in multiples of the slots; at least so many. */
const IN_FLIGHT = 4;
const LEAST_IN_FLIGHT = 512;

/** Most runs that are left to wait in one turn of the event loop. */
const MOST_PARKED = 500;

/** How long a stopping worker lets its runs go on. Milliseconds. */
export const DRAIN_LIMIT = 25_000;

/**
 * Takes queued runs, as many at once as it has slots, and executes them. A slot is free again as soon as a run's
 * end is on its way to the log, so that the end of one run and the start of the next share a commit. What waits for
 * nothing while it is executed takes no slot: many such runs share a commit with their starts, too.
 */
export class Worker {
  private readonly queue: RunQueue;
  private readonly executor: RunExecutor;
  private readonly membership: Membership;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly slots: number;
  private readonly hold: HoldView;
  private readonly isInstant: (run: QueuedRun, granted?: boolean) => boolean;
  private readonly parks: (run: QueuedRun) => boolean;
  private readonly affinityOf: (run: QueuedRun) => string;
  private busy = 0;
  /** Being started or ended, without a slot. */
  private passing = 0;
  private running = false;
  private pumping = false;
  private readonly handles = new Map<string, RunHandle>();
  /** When a run was first seen that somebody else is the first choice for. */
  private readonly heldBack = new WeakSet<QueuedRun>();
  private cancelTimer: Cancel = () => {};
  private timerAt: Instant | null = null;
  private idle: () => void = () => {};

  constructor(options: {
    readonly queue: RunQueue;
    readonly executor: RunExecutor;
    readonly membership: Membership;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    /** How many runs at once. */
    readonly slots: number;
    /** Whether executing a run waits for nothing, perhaps once it was handed its key; default: none is such. */
    readonly isInstant?: (run: QueuedRun, granted?: boolean) => boolean;
    /** Whether a run would only be told to wait; then it waits, and comes back by itself. Default: none. */
    readonly parks?: (run: QueuedRun) => boolean;
    /** By what the worker is chosen that is the first choice for a run; default: its id. */
    readonly affinityOf?: (run: QueuedRun) => string;
    /** Whether a run may start; default: always. Call `wake` when that changes. */
    readonly hold?: HoldView;
  }) {
    this.queue = options.queue;
    this.executor = options.executor;
    this.membership = options.membership;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
    this.slots = options.slots;
    this.isInstant = options.isInstant ?? (() => false);
    this.parks = options.parks ?? (() => false);
    this.affinityOf = options.affinityOf ?? (({ id }) => id);
    this.hold = options.hold ?? neverHeld;
    this.queue.onReady = () => this.pumpSoon();
    this.queue.onTaken = (run, event) => this.onTaken(run, event);
  }

  start(): void {
    this.running = true;
    this.pumpSoon();
  }

  /** Looks whether there is something to take. */
  wake(): void {
    this.pumpSoon();
  }

  /** Runs that take a slot now. */
  get active(): number {
    return this.busy;
  }

  /** Whether a run that is ready now, and was handed its key, is taken at once. */
  hasRoom(run: QueuedRun): boolean {
    const { running, membership, busy, passing, slots, mostPassing } = this;
    if (!running || this.hold.held || !membership.alive || passing >= mostPassing) return false;
    return busy < slots || this.isInstant(run, true);
  }

  /**
   * Takes nothing more, lets what runs go on for a while, and hands the rest back.
   * @param limit milliseconds
   */
  async drain(limit: number = DRAIN_LIMIT): Promise<void> {
    this.running = false;
    this.cancelTimer();
    if (this.handles.size === 0) return;
    const allDone = new Promise<void>((resolve) => (this.idle = resolve));
    const cancelLimit = this.clock.at(this.clock.now() + limit, () => {
      this.telemetry.log.warn('runs are handed back', { runs: this.handles.size });
      for (const handle of this.handles.values()) handle.abort('drained');
    });
    await allDone;
    cancelLimit();
  }

  private pumpSoon(): void {
    if (this.pumping || !this.running) return;
    this.pumping = true;
    setImmediate(() => {
      this.pumping = false;
      this.pump();
    });
  }

  private pump(): void {
    if (!this.running || this.hold.held) return;
    const now = this.clock.now();
    let parked = 0;
    while (this.passing < this.mostPassing) {
      // A worker that could not renew its heartbeat counts as gone: what it took would be taken from it.
      if (!this.membership.alive) break;
      const run = this.queue.next(now);
      if (run === null) break;
      if (this.parks(run)) {
        if (++parked < MOST_PARKED) continue;
        this.pumpSoon();
        break;
      }
      const instant = this.isInstant(run);
      if (!instant && this.busy >= this.slots) {
        this.queue.putBack(run, now);
        break;
      }
      if (this.isForAnother(run)) this.queue.putBack(run, now + HOLD_BACK);
      else this.take(run, instant);
    }
    this.arm(now);
  }

  private get mostPassing(): number {
    return Math.max(LEAST_IN_FLIGHT, this.slots * IN_FLIGHT);
  }

  private isForAnother(run: QueuedRun): boolean {
    const workers = this.membership.doing('worker');
    if (workers.length < 2 || this.heldBack.has(run)) return false;
    if (prefers(this.affinityOf(run), workers) === this.membership.id) return false;
    this.heldBack.add(run);
    return true;
  }

  private take(run: QueuedRun, instant: boolean): void {
    run.taken = true;
    let holdsSlot = !instant;
    if (holdsSlot) this.busy += 1;
    else this.passing += 1;
    const handle = this.executor.execute(run, () => {
      if (!holdsSlot) return;
      holdsSlot = false;
      this.busy -= 1;
      this.passing += 1;
      this.pumpSoon();
    });
    this.handles.set(run.id, handle);
    void handle.done.then((retryAt) => {
      this.handles.delete(run.id);
      run.taken = false;
      if (holdsSlot) this.busy -= 1;
      else this.passing -= 1;
      // Where it goes on here: at once, or when its next attempt may begin.
      this.queue.putBack(run, retryAt ?? this.clock.now());
      this.pumpSoon();
      if (this.handles.size === 0) this.idle();
    });
  }

  private onTaken(run: QueuedRun, event: RecordedEvent): void {
    this.handles.get(run.id)?.onEvent(event);
  }

  /** One timer for the next run whose time comes. */
  private arm(now: Instant): void {
    const at = this.queue.nextTime();
    if (at === this.timerAt || (at !== null && at <= now)) return;
    this.cancelTimer();
    this.timerAt = at;
    if (at === null) return;
    this.cancelTimer = this.clock.at(at, () => {
      this.timerAt = null;
      this.pump();
    });
  }
}
