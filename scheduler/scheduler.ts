import { fromIso, type Cancel, type Clock, type Instant } from '../domain/clock.ts';
import { EventStoreError, isConflict, type EventStore } from '../domain/event-store.ts';
import { decideFires, type FiresDecision } from '../domain/tasks/fires.ts';
import { graceOf } from '../domain/tasks/grace.ts';
import { nextRunOf, type Rhythm } from '../domain/tasks/rhythm.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { DueEntry, DueIndex } from './fires/due-index.ts';
import { FireWriter, type Moment, type PreparedFires } from './fires/fire-writer.ts';
import { neverHeld, type HoldView } from './hold.ts';
import type { Leadership } from './processes/leadership.ts';
import { traceFire } from './tracing.ts';

/** How many tasks are taken at a time, and for how long before others get a turn on the event loop. Milliseconds. */
const CHUNK = 64;
const TURN = 8;

/** Ends of runs wait for the starts of what else is due for so long at the most. Milliseconds. */
const MOST_HELD = 250;

/** So long before a task is due, what deciding and starting it needs is made ready. Milliseconds. */
const AHEAD = 2_000;

/** After a decision could not be written. Milliseconds. */
const RETRY_AFTER = 500;

/** After so many lost races in a row nobody else's event is on its way: this index has missed it, or can't read it. */
const MOST_RACES = 8;

/** Most that is waited where it is not the log that fails: a rule that can't be evaluated, say. Milliseconds. */
const MOST_RETRY_AFTER = 60_000;

/** Those who don't lead decide what the leader has left lying for this long. Milliseconds. */
const HOLD_BACK = 2000;

/** Sets one timer: calls back at or after an instant, once. */
export type Timer = (at: Instant, callback: () => void) => Cancel;

/**
 * Turns what is due into runs. One timer stands for the earliest of all tasks and is set anew on every change.
 *
 * A fire is decided by appending to `fires-<task>` with the revision that was seen, and its run is
 * requested behind it. Any number of schedulers may do this at once: the append decides, leadership only
 * keeps them from doing the same work.
 */
export class Scheduler {
  private readonly index: DueIndex;
  private readonly store: EventStore;
  private readonly clock: Clock;
  private readonly timer: Timer;
  private readonly leadership: Pick<Leadership, 'leads' | 'onChange'>;
  private readonly telemetry: Telemetry;
  /** By it the decisions are written; tells of the runs that are requested, and who begins them. */
  readonly writer: FireWriter;
  private readonly hold: HoldView;
  private cancelTimer: Cancel = () => {};
  private timerAt: Instant | null = null;
  private running = false;
  private scheduled = false;
  /** Since when the ends of runs wait for what is decided here. */
  private held: { readonly since: Instant; readonly end: () => void } | null = null;
  /** Tasks due up to here were made ready. */
  private preparedUpTo: Instant = Number.NEGATIVE_INFINITY;
  /** What was decided ahead, for those whose rhythm is still the same when they are due. */
  private readonly decidedAhead = new WeakMap<Rhythm, DecidedAhead>();
  /** Told of the tasks that are made ready at a time, two seconds before the first of them is due. */
  onAhead: (tasks: readonly Pick<DueEntry, 'taskId' | 'rhythm' | 'dueAt'>[]) => void = () => {};
  /** Told of a task that is due soon, at the revision that its run will be pinned to. */
  onSoon: (taskId: string, revision: number) => void = () => {};
  private readonly inFlight = new Set<Promise<void>>();

  constructor(options: {
    readonly index: DueIndex;
    readonly store: EventStore;
    readonly clock: Clock;
    readonly timer?: Timer;
    readonly leadership: Pick<Leadership, 'leads' | 'onChange'>;
    readonly telemetry: Telemetry;
    readonly name: string;
    /** Whether anything may fire; default: always. Call `holdChanged` when that changes. */
    readonly hold?: HoldView;
  }) {
    this.index = options.index;
    this.store = options.store;
    this.clock = options.clock;
    this.timer = options.timer ?? ((at, callback) => this.clock.at(at, callback));
    this.leadership = options.leadership;
    this.telemetry = options.telemetry;
    this.writer = new FireWriter(options);
    this.hold = options.hold ?? neverHeld;
    this.index.onChange = () => this.arm();
    this.leadership.onChange(() => this.arm());
  }

  start(): void {
    this.running = true;
    this.arm();
  }

  /** The hold has begun or ended. */
  holdChanged(): void {
    this.arm();
  }

  /** Decides nothing more; resolves when what was being written is done. */
  async stop(): Promise<void> {
    this.running = false;
    this.cancelTimer();
    this.letEnd();
    await Promise.all(this.inFlight);
  }

  /** How many milliseconds the earliest undecided fire is overdue; 0 when none is. */
  overdue(): number {
    const earliest = this.index.earliest();
    return earliest === null ? 0 : Math.max(0, this.clock.now() - earliest);
  }

  /** Sets the timer to the earliest, unless it stands there. */
  private arm(): void {
    if (!this.running || this.scheduled || this.hold.held) return;
    const earliest = this.index.earliest();
    if (earliest === null) {
      this.cancelTimer();
      this.timerAt = null;
      return;
    }
    const dueAt = earliest + (this.leadership.leads ? 0 : HOLD_BACK);
    const readyAt = earliest > this.preparedUpTo ? earliest - AHEAD : dueAt;
    const at = readyAt <= this.clock.now() ? dueAt : readyAt;
    if (this.timerAt === at) return;
    if (at === dueAt && readyAt !== dueAt) this.prepare();
    this.cancelTimer();
    if (at <= this.clock.now()) {
      this.timerAt = null;
      this.wakeSoon();
      return;
    }
    this.timerAt = at;
    this.cancelTimer = this.timer(at, () => {
      this.timerAt = null;
      this.wake();
    });
  }

  private wakeSoon(): void {
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.wake();
    });
  }

  private wake(): void {
    if (!this.running || this.hold.held) {
      this.letEnd();
      return;
    }
    const now = this.clock.now();
    const dueUpTo = now - (this.leadership.leads ? 0 : HOLD_BACK);
    const end = performance.now() + TURN;
    let due: readonly DueEntry[];
    let isCrowded = this.held !== null;
    do {
      due = this.index.takeDue(dueUpTo, CHUNK);
      // Whoever follows the log has the processor again once all of them have started.
      isCrowded ||= due.length === CHUNK;
      for (const entry of due) this.follow(this.decide(entry, now, isCrowded));
    } while (due.length === CHUNK && performance.now() < end);
    if (due.length === CHUNK) {
      this.holdEnds(now);
      this.wakeSoon();
    } else {
      this.letEnd();
      this.arm();
    }
  }

  /** There is more to decide: what is started by it goes before the ends of what has started. */
  private holdEnds(now: Instant): void {
    if (this.held === null) this.held = { since: now, end: this.writer.early.hold() };
    else if (now - this.held.since > MOST_HELD) this.letEnd();
  }

  private letEnd(): void {
    this.held?.end();
    this.held = null;
  }

  private follow(deciding: Promise<void>): void {
    this.inFlight.add(deciding);
    void deciding.finally(() => {
      this.inFlight.delete(deciding);
      this.arm();
    });
  }

  /** When many are due in one moment, all that can be done before it is done before it. */
  private prepare(): void {
    this.preparedUpTo = this.clock.now() + 2 * AHEAD;
    const soon = this.index.soon(this.preparedUpTo);
    this.prepareAll(soon, 0);
    this.onAhead(soon);
  }

  private prepareAll(entries: readonly DueEntry[], from: number): void {
    const some = entries.slice(from, from + CHUNK);
    for (const { taskId, rhythm } of some) this.onSoon(taskId, rhythm.task_revision);
    setImmediate(() => {
      for (const entry of some) {
        if (!this.running) return;
        try {
          this.decideAhead(entry);
        } catch (error) {
          this.telemetry.log.debug('a task could not be made ready', { task: entry.taskId, error });
        }
      }
      if (from + CHUNK < entries.length) this.prepareAll(entries, from + CHUNK);
    });
  }

  /**
   * A decision is the same from the moment a fire is due until the next one is (or this one is late): so it can be
   * taken before, and stands if nothing has changed.
   */
  private decideAhead(entry: DueEntry): void {
    const { taskId, rhythm } = entry;
    const due = nextRunOf(rhythm);
    if (due === null || rhythm.owed.length > 0 || this.decidedAhead.has(rhythm)) return;
    const from = fromIso(due);
    const { missed } = this.hold;
    const decision = decideFires(taskId, rhythm, this.index.scheduleOf(entry), from, missed);
    const last = decision.events.at(-1);
    if (last === undefined) return;
    const { next_fire_at } = last.data;
    const next = next_fire_at === null ? Number.POSITIVE_INFINITY : fromIso(next_fire_at);
    const until = Math.min(next, from + graceOf(rhythm.definition));
    const isTraced = this.telemetry.traces !== undefined;
    const prepared = isTraced ? undefined : this.writer.prepare(entry, decision, from);
    this.decidedAhead.set(rhythm, { decision, prepared, missed, from, until });
  }

  private decisionOn(entry: DueEntry, now: Instant): Decided {
    const { taskId, rhythm } = entry;
    const { missed } = this.hold;
    const ahead = this.decidedAhead.get(rhythm);
    // Once: the events that were made ahead have ids of their own.
    this.decidedAhead.delete(rhythm);
    if (ahead?.missed === missed && ahead.from <= now && now < ahead.until) return ahead;
    return { decision: decideFires(taskId, rhythm, this.index.scheduleOf(entry), now, missed) };
  }

  /** Never rejects: what could not be written is tried again. */
  private async decide(entry: DueEntry, now: Instant, isCrowded: boolean): Promise<void> {
    const { rhythm } = entry;
    let decided = rhythm;
    let retryAt = 0;
    try {
      const { decision, prepared } = this.decisionOn(entry, now);
      if (decision.events.length > 0)
        decided = await this.write(entry, decision, { now, isCrowded }, prepared);
      else retryAt = now + RETRY_AFTER;
    } catch (error) {
      const doubled = Math.min(RETRY_AFTER * 2 ** entry.failures, MOST_RETRY_AFTER);
      const passing =
        error instanceof EventStoreError && !(isConflict(error) && entry.failures >= MOST_RACES);
      retryAt = this.clock.now() + (passing ? RETRY_AFTER : doubled);
      if (isConflict(error)) {
        // Somebody else has decided; their event is on its way here and makes the entry new.
        this.telemetry.count('scheduler_lost_races_total');
      } else {
        // Once: while the log is away this happens for every task, twice a second.
        const level = entry.failures === 0 ? 'error' : 'debug';
        this.telemetry.log[level]('the fires of a task could not be decided; trying again', {
          task: entry.taskId,
          error,
        });
      }
    }
    this.index.settle(entry, decided, retryAt);
  }

  private write(
    entry: DueEntry,
    decision: FiresDecision,
    at: Moment,
    prepared: PreparedFires | undefined,
  ): Promise<Rhythm> {
    const { writer } = this;
    const { traces } = this.telemetry;
    if (traces === undefined) return writer.write(entry, decision, at, prepared);
    return traceFire(traces, this.store, entry, decision, ({ traceparent }) =>
      writer.write(entry, decision, { ...at, traceparent }),
    );
  }
}

interface Decided {
  readonly decision: FiresDecision;
  /** What was made of it ahead. */
  readonly prepared?: PreparedFires | undefined;
}

/** A decision, and the time in which it is the right one: from `from`, and before `until`. */
interface DecidedAhead extends Decided {
  readonly missed: HoldView['missed'];
  readonly from: Instant;
  readonly until: Instant;
}
