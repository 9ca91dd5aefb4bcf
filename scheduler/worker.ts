import type { Cancel, Instant } from '../domain/clock.ts';
import type { CallSlots } from './call-slots.ts';
import { neverHeld, type HoldView } from './hold.ts';
import { preferredMember } from './runs/preferred-worker.ts';
import type { RunExecutor, RunHandle } from './runs/run-executor.ts';
import { partyOf, type QueuedRun } from './runs/queued-run.ts';
import type { RunParts } from './runs/run-work.ts';
import { Slots, type SlotLimits, type SlotUse } from './runs/slots.ts';

/** How long a run is left to its preferred worker, at first and at most. Milliseconds. */
const HOLD_BACK = 75;
const MAX_HOLD_BACK = 600;

/** A worker that has started no run for this many milliseconds may be stuck, full, or done with its own runs. */
const STALLED_AFTER = 1_000;

/** How many runs without a slot may be starting or ending: a multiple of the slots, and a minimum. */
const STARTING_PER_SLOT = 5;
const MIN_STARTING = 320;

/** How many runs are parked per turn of the event loop. */
const MAX_PARKED_RUNS = 500;

/** How long the worker may take runs before the event loop gets a turn. Milliseconds. */
const MAX_TURN_MS = 8;

/** How long runs may continue while the worker stops. Milliseconds. */
const DRAIN_LIMIT = 25_000;

export interface WorkerOptions extends Pick<
  RunParts,
  'queue' | 'membership' | 'clock' | 'telemetry'
> {
  readonly executor: RunExecutor;
  /** How many runs execute at once. */
  readonly slots: number;
  /** The most slots that one agent or namespace may hold. Default: all. */
  readonly limits?: SlotLimits | undefined;
  /** Whether a run waits for nothing, once its key is granted. Default: none. */
  readonly isInstant?: (run: QueuedRun, granted?: boolean) => boolean;
  /** Whether a run must wait for its key; then it returns to the queue by itself. Default: none. */
  readonly parks?: (run: QueuedRun) => boolean;
  /** The key that selects a run's preferred worker. Default: the run's id. */
  readonly affinityOf?: (run: QueuedRun) => string;
  /** Whether operators hold the service. Default: never. Call `wake` when it changes. */
  readonly hold?: HoldView;
  /** Slots that direct tool calls take. Default: none. */
  readonly calls?: CallSlots | undefined;
}

/**
 * Takes queued runs and executes them, as many at once as it has slots. A slot is free again once its run's end is on the
 * way to the log, so one run's end shares a commit with the next run's start. Instant runs take no slot.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #slots: Slots;
  readonly #hold: HoldView;
  readonly #isInstant: (run: QueuedRun, granted?: boolean) => boolean;
  readonly #handles = new Map<string, RunHandle>();
  /** Runs that are left to their preferred workers, each with the next waiting time in milliseconds. */
  readonly #holdBacks = new WeakMap<QueuedRun, number>();
  /** When each worker last started a run, as far as this process has seen; only recent starts. */
  readonly #lastStarts = new Map<string, Instant>();
  readonly #maxStarting: number;
  /** Runs that are starting or ending without a slot. */
  #starting = 0;
  #running = false;
  #pumping = false;
  #cancelTimer: Cancel = () => {};
  #timerAt: Instant | null = null;
  #onIdle: () => void = () => {};

  constructor(options: WorkerOptions) {
    const { queue, slots, limits, isInstant, hold, calls } = options;
    this.#options = options;
    this.#slots = new Slots(slots, () => calls?.taken ?? 0, limits);
    this.#maxStarting = Math.max(MIN_STARTING, slots * STARTING_PER_SLOT);
    this.#isInstant = isInstant ?? (() => false);
    this.#hold = hold ?? neverHeld;
    calls?.shareWith({
      runsHold: () => this.#slots.taken,
      slotReleased: () => (this.#running ? this.wake() : calls.offer()),
    });
    queue.subscribe({
      onReady: () => this.wake(),
      onStarted: ({ owner }) => {
        if (owner !== null) this.#startedBy(owner);
      },
      onTaken: (run, event) => this.#handles.get(run.id)?.onEvent(event),
    });
  }

  start(): void {
    this.#running = true;
    this.wake();
  }

  /** Slots that runs hold now. */
  get active(): number {
    return this.#slots.taken;
  }

  /** The usage of its slots, and the time since which they have been full. */
  get slotUse(): SlotUse {
    return this.#slots.use(this.#options.queue.waiting);
  }

  /** The time since which runs have been waiting because all slots are taken; null if none are. */
  get fullSince(): Instant | null {
    return this.#slots.fullSince(this.#options.queue.waiting);
  }

  /** Whether a run that is ready, and has its key, would be taken at once. */
  hasRoom(run: QueuedRun): boolean {
    if (!this.#mayStart(this.#maxStarting)) return false;
    const hasSlot = this.#slots.isFree && this.#slots.limitReached(run) === null;
    return hasSlot || this.#isInstant(run, true);
  }

  /** Whether this worker takes a run before it is in the log. @param maxStarting limit of runs without a slot */
  mayTake(run: QueuedRun, maxStarting: number): boolean {
    return this.#mayStart(maxStarting) && this.#preferredElsewhere(run) === null;
  }

  /** Counts a run without a slot. @returns releases it */
  reserve(): () => void {
    this.#starting += 1;
    return () => (this.#starting -= 1);
  }

  /** Takes no more runs, lets running ones continue for a while, and hands back the rest. @param limit milliseconds */
  async drain(limit: number = DRAIN_LIMIT): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    if (this.#handles.size === 0) return;
    const idle = new Promise<void>((resolve) => (this.#onIdle = resolve));
    const cancelLimit = this.#options.clock.after(limit, () => {
      this.#options.telemetry.log.warn('handed back runs', { runs: this.#handles.size });
      for (const handle of this.#handles.values()) handle.abort('drained');
    });
    await idle;
    cancelLimit();
  }

  /** Checks the queue in the next turn of the event loop. */
  wake(): void {
    if (this.#pumping || !this.#running) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { clock, calls } = this.#options;
    const now = clock.now();
    const isOpen = this.#running && !this.#hold.held;
    const short = isOpen && this.#takeReady(now);
    this.#slots.recordPass(short, now);
    calls?.offer();
    if (isOpen) this.#arm(now);
  }

  /** @returns whether a run had to wait because no slot was free */
  #takeReady(now: Instant): boolean {
    const { queue, parks } = this.#options;
    // Instant runs are executed while they are taken.
    const end = performance.now() + MAX_TURN_MS;
    let parked = 0;
    while (this.#mayStart(this.#maxStarting)) {
      if (performance.now() > end || parked === MAX_PARKED_RUNS) {
        this.wake();
        return false;
      }
      const run = queue.peek(now);
      if (run === null) return false;
      if (parks?.(run) === true) {
        queue.ready.pop();
        parked += 1;
        continue;
      }
      const instant = this.#isInstant(run);
      // The run keeps its turn, so it gets the next free slot.
      if (!instant && !this.#slots.isFree) return true;
      const full = instant ? null : this.#slots.limitReached(run);
      if (full !== null) {
        queue.ready.hold(full);
        continue;
      }
      queue.ready.pop();
      const heldBack = this.#leftToAnother(run, now);
      if (heldBack === null) this.#take(run, instant);
      else queue.putBack(run, now + heldBack);
    }
    return false;
  }

  /** A worker that could not renew its heartbeat counts as dead: its runs would be taken over. */
  #mayStart(maxStarting: number): boolean {
    const { membership } = this.#options;
    return this.#running && !this.#hold.held && membership.alive && this.#starting < maxStarting;
  }

  #startedBy(worker: string): void {
    const now = this.#options.clock.now();
    // In a backlog, many runs start within a millisecond.
    if (this.#lastStarts.get(worker) === now) return;
    // Sorted by time. Entries of workers that are gone are removed at later starts.
    this.#lastStarts.delete(worker);
    this.#lastStarts.set(worker, now);
    for (const [id, at] of this.#lastStarts) {
      if (now - at < STALLED_AFTER) break;
      this.#lastStarts.delete(id);
    }
  }

  /**
   * How long a run is left to its preferred worker; null if that is this worker, or if its time is over. While both
   * workers have their own runs to start, each starts only those. Otherwise, they would race for every run of a
   * backlog.
   */
  #leftToAnother(run: QueuedRun, now: Instant): number | null {
    const { membership } = this.#options;
    const preferred = this.#preferredElsewhere(run);
    if (preferred === null) return null;
    const next = this.#holdBacks.get(run);
    this.#holdBacks.set(run, Math.min((next ?? HOLD_BACK) * 2, MAX_HOLD_BACK));
    if (next === undefined) return HOLD_BACK;
    const startsRuns = (worker: string): boolean =>
      now - (this.#lastStarts.get(worker) ?? -Infinity) < STALLED_AFTER;
    // A busy process sees the starts of other workers late.
    const mayStart = next < MAX_HOLD_BACK || startsRuns(preferred);
    return mayStart && startsRuns(membership.id) ? next : null;
  }

  /** The worker that should take a run first; null if it is this one. */
  #preferredElsewhere(run: QueuedRun): string | null {
    const { membership, affinityOf } = this.#options;
    const preferred = preferredMember(() => affinityOf?.(run) ?? run.id, membership);
    return preferred === membership.id ? null : preferred;
  }

  #take(run: QueuedRun, instant: boolean): void {
    const { executor, clock } = this.#options;
    run.taken = true;
    let release = instant ? this.reserve() : this.#takeSlot(run, clock.now());
    let holdsSlot = !instant;
    const handle = executor.execute(run, () => {
      if (!holdsSlot) return;
      holdsSlot = false;
      release();
      release = this.reserve();
      this.wake();
    });
    this.follow(run, handle, () => release());
  }

  #takeSlot(run: QueuedRun, now: Instant): () => void {
    this.#slots.take(run, now);
    return () => {
      this.#slots.release(run);
      this.#options.queue.ready.release(partyOf(run));
      this.#options.calls?.offer();
    };
  }

  /** Follows an execution to its end, then puts the run back into the queue if it continues here. */
  follow(run: QueuedRun, handle: RunHandle, release: () => void): void {
    const { queue, clock } = this.#options;
    this.#handles.set(run.id, handle);
    void handle.done.then((retryAt) => {
      this.#handles.delete(run.id);
      run.taken = false;
      release();
      queue.putBack(run, retryAt ?? clock.now());
      this.wake();
      if (this.#handles.size === 0) this.#onIdle();
    });
  }

  /** Sets one timer for the next run that waits for its time. */
  #arm(now: Instant): void {
    const { queue, clock } = this.#options;
    const at = queue.nextTime();
    if (at === this.#timerAt || (at !== null && at <= now)) return;
    this.#cancelTimer();
    this.#timerAt = at;
    if (at === null) return;
    this.#cancelTimer = clock.at(at, () => {
      this.#timerAt = null;
      this.#pump();
    });
  }
}
