import { fromIso, toIso, type Cancel, type Clock, type Instant } from '../domain/clock.ts';
import type { NewEvent, RecordedEvent } from '../domain/event-store.ts';
import type { DataOf, RunEvent } from '../domain/events/catalogue.ts';
import { occurAt, toNewEvents } from '../domain/handle.ts';
import { newId } from '../domain/ids.ts';
import { startRun } from '../domain/runs/run.ts';
import { streams } from '../domain/streams.ts';
import { TransientMap } from '../domain/transient-map.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { CallSlots } from './call-slots.ts';
import { neverHeld, type HoldView } from './hold.ts';
import type { Membership } from './processes/membership.ts';
import { prefers } from './runs/preference.ts';
import type { RunExecutor, RunHandle } from './runs/run-executor.ts';
import type { QueuedRun, RunQueue } from './runs/run-queue.ts';
import type { Begun, EarlyDraft, EarlyStart, EarlyStarts } from './runs/run-work.ts';
import { Slots, type SlotUse } from './runs/slots.ts';
import { StartsFirst } from './runs/starts-first.ts';

/** A run that another worker is the first choice for is left to it for this long. Milliseconds. */
const HOLD_BACK = 75;

/** Runs that are being started or ended and take no slot, in multiples of the slots; at least so many. */
const IN_FLIGHT = 5;
const LEAST_IN_FLIGHT = 320;

/** Runs that are being started or ended, beyond which none is taken before it is in the log. */
const MOST_EARLY = 2048;

/** A start that was made ahead goes to the log as it is for so long: what it says of its lease is that much short. */
const FRESH = 1_000;

/** Most runs that are left to wait in one turn of the event loop. */
const MOST_PARKED = 500;

/** Runs are taken for so long before others get a turn on the event loop. Milliseconds. */
const TURN = 8;

/** How long a stopping worker lets its runs go on. Milliseconds. */
const DRAIN_LIMIT = 25_000;

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
  private readonly slots: Slots;
  private readonly hold: HoldView;
  private readonly calls: CallSlots | null;
  private readonly isInstant: (run: QueuedRun, granted?: boolean) => boolean;
  private readonly parks: (run: QueuedRun) => boolean;
  private readonly affinityOf: (run: QueuedRun) => string;
  private readonly startsFirst = new StartsFirst();
  /** Being started or ended, without a slot. */
  private passing = 0;
  private running = false;
  private pumping = false;
  private readonly handles = new TransientMap<string, RunHandle>();
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
    /** Slots that tools take which are called directly; default: none. */
    readonly calls?: CallSlots | undefined;
  }) {
    this.queue = options.queue;
    this.executor = options.executor;
    this.membership = options.membership;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
    this.slots = new Slots(options.slots, () => this.calls?.taken ?? 0);
    this.isInstant = options.isInstant ?? (() => false);
    this.parks = options.parks ?? (() => false);
    this.affinityOf = options.affinityOf ?? (({ id }) => id);
    this.hold = options.hold ?? neverHeld;
    this.calls = options.calls ?? null;
    if (this.calls !== null) {
      this.calls.busy = () => this.slots.taken;
      this.calls.onFree = () => (this.running ? this.pumpSoon() : this.calls?.offer());
    }
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

  /** For the scheduler of this process. */
  readonly early: EarlyStarts = {
    draft: (id, request, at) => this.draftEarly(id, request, at),
    begin: (draft, now) => this.beginEarly(draft, now),
    hold: () => this.startsFirst.hold(),
  };

  /** Runs that take a slot now. */
  get active(): number {
    return this.slots.taken;
  }

  /** How its slots are used, and since when they have not been enough. */
  get slotUse(): SlotUse {
    return this.slots.use(this.queue.waiting);
  }

  /** Since when runs have been waiting while all slots of this worker were taken; null while that is not so. */
  get fullSince(): Instant | null {
    return this.slots.fullSince(this.queue.waiting);
  }

  /** Whether a run that is ready now, and was handed its key, is taken at once. */
  hasRoom(run: QueuedRun): boolean {
    const { running, membership, passing, slots, mostPassing } = this;
    if (!running || this.hold.held || !membership.alive || passing >= mostPassing) return false;
    return slots.isFree || this.isInstant(run, true);
  }

  private freeSlot(run: QueuedRun): void {
    this.slots.release(run);
    this.calls?.offer();
  }

  /**
   * Takes nothing more, lets what runs go on for a while, and hands the rest back.
   * @param limit milliseconds
   */
  async drain(limit: number = DRAIN_LIMIT): Promise<void> {
    this.running = false;
    this.cancelTimer();
    this.startsFirst.beginAll();
    if (this.handles.size === 0) return;
    const allDone = new Promise<void>((resolve) => (this.idle = resolve));
    const cancelLimit = this.clock.after(limit, () => {
      this.telemetry.log.warn('runs are handed back', { runs: this.handles.size });
      for (const handle of this.handles.values()) handle.abort('drained');
    });
    await allDone;
    cancelLimit();
  }

  /**
   * Makes ahead what {@link beginEarly} needs of a run; null where the run does not begin early.
   *
   * @param at when it is to be requested, at the earliest
   */
  private draftEarly(id: string, request: DataOf<'RunRequested'>, at: Instant): EarlyDraft | null {
    const { queue, executor, membership } = this;
    if (fromIso(request.run_at) > at) return null;
    const run = queue.draft(id, request, at);
    const task = executor.admitsAtOnce(run);
    // What needs a key has to take it first.
    if (task === null || !this.isInstant(run, false)) return null;
    return { run, task, request, event: startOf(run, membership, at), at };
  }

  /**
   * Takes a run that the scheduler of this process is about to request, so that its start goes to the log together with
   * its request. Only one that waits for nothing, and that no other worker is the first choice for: all others are
   * taken in their order once they are in the log.
   */
  private beginEarly(draft: EarlyDraft, now: Instant): EarlyStart | null {
    const { queue, executor, membership, telemetry } = this;
    const { run, task, request } = draft;
    if (!this.running || this.hold.held || !membership.alive) return null;
    if (this.passing >= MOST_EARLY || !this.isFirstChoiceFor(run)) return null;
    if (executor.admitsAtOnce(run) === null || !queue.expect(run)) return null;
    this.passing += 1;
    const event = now - draft.at < FRESH ? draft.event : startOf(run, membership, now);
    occurAt([event], now);
    const settled = this.startsFirst.begin();
    return {
      event,
      failed: () => {
        settled();
        this.passing -= 1;
        queue.unexpected(run);
        this.pumpSoon();
      },
      began: (revision) => {
        settled();
        queue.applied(run, { type: 'RunRequested', data: request }, revision - 1);
        queue.applied(run, event as RunEvent, revision);
        const begun = { task, revision, startedAt: toIso(now) };
        this.startsFirst.whenMade(() => this.goOn(run, begun));
        telemetry.observe('run_start_lateness_seconds', Math.max(0, now - run.runAt) / 1000);
      },
    };
  }

  private goOn(run: QueuedRun, begun: Omit<Begun, 'ready'>): void {
    // Somebody who took this process for gone may have been here between the commit and its answer.
    if (run.ended || run.state !== 'running' || run.owner !== this.membership.id) {
      this.passing -= 1;
      this.queue.unexpected(run);
      return;
    }
    const { startsFirst } = this;
    const ready = (): Promise<void> | null => startsFirst.wait();
    const handle = this.executor.goOn(run, { ...begun, revision: run.revision, ready });
    this.lead(run, handle, () => (this.passing -= 1));
    if (run.cancelRequested) handle.abort('canceled');
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
    const now = this.clock.now();
    if (!this.running || this.hold.held) {
      this.slots.looked(false, now);
      this.calls?.offer();
      return;
    }
    // What starts with its end is executed as it is taken.
    const end = performance.now() + TURN;
    let parked = 0;
    let short = false;
    while (this.passing < this.mostPassing) {
      if (performance.now() > end) {
        this.pumpSoon();
        break;
      }
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
      if (!instant && !this.slots.isFree) {
        this.queue.putBack(run, now);
        short = true;
        break;
      }
      if (this.isForAnother(run)) this.queue.putBack(run, now + HOLD_BACK);
      else this.take(run, instant);
    }
    this.slots.looked(short, now);
    this.calls?.offer();
    this.arm(now);
  }

  private get mostPassing(): number {
    return Math.max(LEAST_IN_FLIGHT, this.slots.size * IN_FLIGHT);
  }

  private isForAnother(run: QueuedRun): boolean {
    if (this.heldBack.has(run) || this.isFirstChoiceFor(run)) return false;
    this.heldBack.add(run);
    return true;
  }

  private isFirstChoiceFor(run: QueuedRun): boolean {
    const workers = this.membership.doing('worker');
    return workers.length < 2 || prefers(this.affinityOf(run), workers) === this.membership.id;
  }

  private take(run: QueuedRun, instant: boolean): void {
    run.taken = true;
    let holdsSlot = !instant;
    if (holdsSlot) this.slots.take(run, this.clock.now());
    else this.passing += 1;
    const handle = this.executor.execute(run, () => {
      if (!holdsSlot) return;
      holdsSlot = false;
      this.freeSlot(run);
      this.passing += 1;
      this.pumpSoon();
    });
    this.lead(run, handle, () => {
      if (holdsSlot) this.freeSlot(run);
      else this.passing -= 1;
    });
  }

  private lead(run: QueuedRun, handle: RunHandle, letGo: () => void): void {
    this.handles.set(run.id, handle);
    void handle.done.then((retryAt) => {
      this.handles.delete(run.id);
      run.taken = false;
      letGo();
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

/** The start of a run that is not in the log yet, as it goes there. */
function startOf(
  run: QueuedRun,
  { id: source, lease }: Pick<Membership, 'id' | 'lease'>,
  now: Instant,
): NewEvent {
  const context = { commandId: newId(now), actor: 'service', source, correlationId: run.id, now };
  const start = startRun(run, source, now + lease);
  const [event] = toNewEvents(streams.run(run.id), [start], context);
  if (event === undefined) throw new Error('a start is one event');
  return event;
}
