import type { Cancel, Clock, Instant } from '../domain/clock.ts';
import { EventStoreError, isConflict, type EventStore } from '../domain/event-store.ts';
import type { MissedOrder } from '../domain/operators/operations.ts';
import { decideFires } from '../domain/tasks/fires.ts';
import type { ScheduleState } from '../domain/tasks/schedule-state.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { DueEntry, DueIndex } from './fires/due-index.ts';
import type { FireWriter, PreparedFires, WriteContext } from './fires/fire-writer.ts';
import { neverHeld, type HoldView } from './hold.ts';
import { anyOwner, type Owners } from './owners/owners.ts';
import type { Leadership } from './processes/leadership.ts';
import { traceFire } from './tracing.ts';

/** The message that reports a failure. */
const FAILURE = 'could not decide the fires of a task; retrying';

/**
 * How many tasks are decided at a time, and how long deciding may take before the event loop gets a turn
 * (milliseconds).
 */
const CHUNK = 64;
const MAX_TURN_MS = 8;

/** Milliseconds before a decision is retried that could not be written. */
const RETRY_AFTER = 500;

/** After this many lost races in a row, no other process is deciding: this index is stale or cannot be read. */
const MAX_LOST_RACES = 8;

/** The longest pause after errors that are not the event log's, such as an invalid rule. Milliseconds. */
const MAX_RETRY_AFTER = 60_000;

/**
 * The interval of checks of a task that its agent holds back, in case a change of the agent goes unnoticed.
 * Milliseconds.
 */
const HELD_RECHECK = 30_000;

/** How long a scheduler that does not lead waits for the leader to decide. Milliseconds. */
const HOLD_BACK = 2000;

/** Sets one timer: calls back once, at or after an instant. */
export type Timer = (at: Instant, callback: () => void) => Cancel;

/** Makes many tasks that are due at one instant start sooner (`scheduler/burst/`). Optional. */
export interface SchedulerBurst {
  /** Called on every change with the time of the earliest fire. */
  expect(earliest: Instant): void;
  /** The prepared decision of a due task, if there is one for its present state. */
  take(entry: DueEntry, now: Instant): PreparedFires | null;
  /** More decisions follow in the next turns, and the ends of runs wait for them. */
  holdEnds(now: Instant): void;
  /** No more decisions follow. */
  releaseEnds(): void;
  stop(): void;
}

export interface SchedulerOptions {
  readonly index: DueIndex;
  readonly writer: FireWriter;
  readonly store: EventStore;
  readonly clock: Clock;
  /** Default: `clock.at`. */
  readonly timer?: Timer | undefined;
  readonly leadership: Pick<Leadership, 'leads' | 'onChange'>;
  readonly telemetry: Telemetry;
  /** Whether operators hold the service. Default: never. Call `holdChanged` when it changes. */
  readonly hold?: HoldView | undefined;
  readonly burst?: SchedulerBurst | undefined;
  /** Decides whose tasks may fire. Default: everybody's. */
  readonly owners?: Owners | undefined;
}

/**
 * Turns due tasks into runs. One timer is set for the earliest fire of all tasks, and again on every change.
 *
 * A fire is decided by an append to `fires-<task>` at the expected revision, and its run is requested after it. Several
 * schedulers may run: the append decides. Leadership only keeps them from doing the same work.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #hold: HoldView;
  readonly #owners: Owners;
  readonly #inFlight = new Set<Promise<void>>();
  #cancelTimer: Cancel = () => {};
  #timerAt: Instant | null = null;
  #running = false;
  #scheduled = false;
  /** More tasks are due than one turn of the event loop decides. */
  #isCrowded = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#hold = options.hold ?? neverHeld;
    this.#owners = options.owners ?? anyOwner;
    this.#owners.onChange((agentId) => options.index.releaseHeld(agentId));
    options.index.onChange(() => this.#arm());
    options.leadership.onChange(() => this.#arm());
  }

  start(): void {
    this.#running = true;
    this.#arm();
  }

  /** Notes that the hold has started or ended. */
  holdChanged(): void {
    this.#arm();
  }

  /** Decides nothing more. Resolves when all pending decisions are written. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    this.#options.burst?.stop();
    await Promise.all(this.#inFlight);
  }

  /** How many milliseconds the earliest undecided fire is overdue; 0 if none is overdue. */
  overdue(): number {
    const earliest = this.#options.index.earliest();
    return earliest === null ? 0 : Math.max(0, this.#options.clock.now() - earliest);
  }

  get #holdBack(): number {
    return this.#options.leadership.leads ? 0 : HOLD_BACK;
  }

  /** Sets the timer to the earliest fire, unless it is already set to that time. */
  #arm(): void {
    if (!this.#running || this.#scheduled || this.#hold.held) return;
    const { index, clock, timer, burst } = this.#options;
    const earliest = index.earliest();
    if (earliest === null) {
      this.#cancelTimer();
      this.#timerAt = null;
      return;
    }
    burst?.expect(earliest);
    const at = earliest + this.#holdBack;
    if (this.#timerAt === at) return;
    this.#cancelTimer();
    if (at <= clock.now()) {
      this.#timerAt = null;
      this.#wakeSoon();
      return;
    }
    this.#timerAt = at;
    const wake = (): void => {
      this.#timerAt = null;
      this.#wake();
    };
    this.#cancelTimer = timer === undefined ? clock.at(at, wake) : timer(at, wake);
  }

  #wakeSoon(): void {
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#wake();
    });
  }

  #wake(): void {
    const { index, clock, burst } = this.#options;
    if (!this.#running || this.#hold.held) {
      this.#letEndsGo();
      return;
    }
    const now = clock.now();
    const dueUpTo = now - this.#holdBack;
    const end = performance.now() + MAX_TURN_MS;
    let due: readonly DueEntry[];
    do {
      due = index.takeDue(dueUpTo, CHUNK);
      this.#isCrowded ||= due.length === CHUNK;
      for (const entry of due) this.#follow(this.#decide(entry, now));
    } while (due.length === CHUNK && performance.now() < end);
    if (due.length === CHUNK) {
      burst?.holdEnds(now);
      this.#wakeSoon();
    } else {
      this.#letEndsGo();
      this.#arm();
    }
  }

  #letEndsGo(): void {
    this.#isCrowded = false;
    this.#options.burst?.releaseEnds();
  }

  #follow(deciding: Promise<void>): void {
    this.#inFlight.add(deciding);
    void deciding.finally(() => {
      this.#inFlight.delete(deciding);
      this.#arm();
    });
  }

  /** Never rejects: a decision that could not be written is retried. */
  async #decide(entry: DueEntry, now: Instant): Promise<void> {
    const { index, clock, telemetry, burst } = this.#options;
    const { taskId, state } = entry;
    let decided = state;
    let retryAt = 0;
    try {
      const denying = this.#owners.startDenial(state.definition.created_by);
      const denial = denying instanceof Promise ? await denying : denying;
      if (denial !== null) return index.holdBack(entry, denial, now + HELD_RECHECK);
      const missed = this.#missedOrderFor(entry);
      const prepared = missed === this.#hold.missed ? burst?.take(entry, now) : null;
      const fires = prepared ?? {
        decision: decideFires(taskId, state, index.scheduleOf(entry), now, missed),
      };
      if (fires.decision.events.length > 0) decided = await this.#write(entry, fires, now);
      else retryAt = now + RETRY_AFTER;
      telemetry.failures.worked(FAILURE);
    } catch (error) {
      const isStale = isConflict(error) && entry.failures >= MAX_LOST_RACES;
      const doubled = Math.min(RETRY_AFTER * 2 ** entry.failures, MAX_RETRY_AFTER);
      const isTemporary = error instanceof EventStoreError && !isStale;
      retryAt = clock.now() + (isTemporary ? RETRY_AFTER : doubled);
      if (isConflict(error)) {
        // Another process has decided. Its event is on its way here, and will update the entry.
        telemetry.count('scheduler_lost_races_total');
      } else {
        telemetry.failures.failed(FAILURE, error, { task: taskId });
      }
    }
    index.settle(entry, decided, retryAt);
  }

  /**
   * The policy that the end of a hold, or of its agent's disabling, set for a due task; the later of the two counts.
   */
  #missedOrderFor({ state, dueAt }: DueEntry): MissedOrder | null {
    const ofHold = this.#hold.missed;
    const ofOwner = this.#owners.missedOf(state.definition.created_by);
    if (ofOwner === null || dueAt === null || dueAt > ofOwner.upTo) return ofHold;
    return ofHold !== null && ofHold.upTo > ofOwner.upTo ? ofHold : ofOwner;
  }

  #write(
    entry: DueEntry,
    { decision, appends }: PreparedFires,
    now: Instant,
  ): Promise<ScheduleState> {
    const { writer, store, telemetry } = this.#options;
    const context: WriteContext = { now, isCrowded: this.#isCrowded };
    if (telemetry.traces === undefined) return writer.write(entry, decision, context, appends);
    return traceFire(telemetry.traces, store, entry, decision, ({ traceparent }) =>
      writer.write(entry, decision, { ...context, traceparent }),
    );
  }
}
