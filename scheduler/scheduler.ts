import { fromIso, type Cancel, type Clock, type Instant } from '../domain/clock.ts';
import {
  EventStoreError,
  isConflict,
  type AppendResult,
  type EventStore,
  type StreamAppend,
} from '../domain/event-store.ts';
import { decideFires, type FiresDecision, type ScheduledRun } from '../domain/fires.ts';
import { toNewEvents, type CommandContext } from '../domain/handle.ts';
import { newId } from '../domain/ids.ts';
import { evolveRhythm, nextRunOf, type Rhythm } from '../domain/rhythm.ts';
import { isUnconditional, requestRun, type RequestRules } from '../domain/run-request.ts';
import { streams } from '../domain/streams.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { DueEntry, DueIndex } from './due-index.ts';
import { neverHeld, type HoldView } from './hold.ts';
import type { Leadership } from './leadership.ts';
import { ignoreConflict, requestCommandId, requestOf } from './requests-of-runs.ts';
import { traceFire } from './tracing.ts';

/** How many tasks are taken at a time, and for how long before others get a turn on the event loop. Milliseconds. */
const CHUNK = 64;
const TURN = 8;

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
  private readonly leadership: Leadership;
  private readonly telemetry: Telemetry;
  private readonly name: string;
  private readonly hold: HoldView;
  private cancelTimer: Cancel = () => {};
  private timerAt: Instant | null = null;
  private running = false;
  private scheduled = false;
  /** Tasks due up to here were made ready. */
  private preparedUpTo: Instant = Number.NEGATIVE_INFINITY;
  /** What was decided ahead, for those whose rhythm is still the same when they are due. */
  private readonly decidedAhead = new WeakMap<Rhythm, DecidedAhead>();
  /** Told of a task that is due soon, at the revision that its run will be pinned to. */
  onSoon: (taskId: string, revision: number) => void = () => {};
  private readonly inFlight = new Set<Promise<void>>();
  /** Runs that this scheduler has requested itself, told to whoever checks that each fire has its run. */
  onRequested: (runId: string) => void = () => {};

  constructor(options: {
    readonly index: DueIndex;
    readonly store: EventStore;
    readonly clock: Clock;
    readonly timer?: Timer;
    readonly leadership: Leadership;
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
    this.name = options.name;
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
    if (!this.running || this.hold.held) return;
    const now = this.clock.now();
    const dueUpTo = now - (this.leadership.leads ? 0 : HOLD_BACK);
    const end = performance.now() + TURN;
    let due: readonly DueEntry[];
    do {
      due = this.index.takeDue(dueUpTo, CHUNK);
      for (const entry of due) this.follow(this.decide(entry, now));
    } while (due.length === CHUNK && performance.now() < end);
    if (due.length === CHUNK) this.wakeSoon();
    else this.arm();
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
    this.prepareAll(this.index.soon(this.preparedUpTo), 0);
  }

  private prepareAll(entries: readonly DueEntry[], from: number): void {
    for (const entry of entries.slice(from, from + CHUNK)) {
      try {
        this.decideAhead(entry);
        this.onSoon(entry.taskId, entry.rhythm.task_revision);
      } catch (error) {
        this.telemetry.log.debug('a task could not be made ready', { task: entry.taskId, error });
      }
    }
    const next = from + CHUNK;
    if (next >= entries.length) return;
    setImmediate(() => {
      if (this.running) this.prepareAll(entries, next);
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
    const grace = rhythm.definition.misfire_grace_seconds * 1000;
    const next = next_fire_at === null ? Number.POSITIVE_INFINITY : fromIso(next_fire_at);
    this.decidedAhead.set(rhythm, { decision, missed, from, until: Math.min(next, from + grace) });
  }

  private decisionOn(entry: DueEntry, now: Instant): FiresDecision {
    const { taskId, rhythm } = entry;
    const { missed } = this.hold;
    const ahead = this.decidedAhead.get(rhythm);
    const stands = ahead?.missed === missed && ahead.from <= now && now < ahead.until;
    if (stands) return ahead.decision;
    return decideFires(taskId, rhythm, this.index.scheduleOf(entry), now, missed);
  }

  /** Never rejects: what could not be written is tried again. */
  private async decide(entry: DueEntry, now: Instant): Promise<void> {
    const { rhythm } = entry;
    let decided = rhythm;
    let retryAt = 0;
    try {
      const decision = this.decisionOn(entry, now);
      if (decision.events.length > 0) decided = await this.writeTraced(entry, decision, now);
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

  private writeTraced(entry: DueEntry, decision: FiresDecision, now: Instant): Promise<Rhythm> {
    const { traces } = this.telemetry;
    if (traces === undefined) return this.write(entry, decision, { now });
    return traceFire(traces, this.store, entry, decision, ({ traceparent }) =>
      this.write(entry, decision, { now, traceparent }),
    );
  }

  private async write(entry: DueEntry, decision: FiresDecision, at: Moment): Promise<Rhythm> {
    const { taskId, rhythm } = entry;
    const stream = streams.fires(taskId);
    const decisionContext = this.contextOf(newId(at.now), taskId, at);
    const fires: StreamAppend = {
      stream,
      events: toNewEvents(stream, decision.events, decisionContext),
      expected: rhythm.fires?.revision ?? 'none',
    };
    const { definition } = rhythm;
    const written = isUnconditional(definition)
      ? await this.appendWithRuns(fires, decision.runs, at)
      : await this.appendThenAsk(fires, decision.runs, definition, at);
    this.report(decision, written.skipped, at.now);
    let revision = written.revision - decision.events.length;
    let evolved: Rhythm | null = rhythm;
    for (const event of decision.events) {
      revision += 1;
      const metadata = fires.events[0]?.metadata;
      if (metadata) evolved = evolveRhythm(evolved, event, { revision, metadata });
    }
    return evolved ?? rhythm;
  }

  /** The decision, then the runs. A run that somebody has requested already is as it should be. */
  private async appendWithRuns(
    fires: StreamAppend,
    runs: readonly ScheduledRun[],
    at: Moment,
  ): Promise<Written> {
    const requests = runs.map((run) => requestOf(run, this.runContextOf(run, at)));
    let first: AppendResult | undefined;
    try {
      [first] = await this.store.appendInOrder([fires, ...requests]);
    } catch (error) {
      if (!isConflict(error) || error.stream === fires.stream) throw error;
      first = await this.store.append(fires.stream, fires.events, fires.expected);
      for (const { stream, events, expected } of requests) {
        await this.store.append(stream, events, expected).catch(ignoreConflict);
      }
    }
    for (const { runId } of runs) this.onRequested(runId);
    return { revision: first?.revision ?? 0, skipped: new Map() };
  }

  /**
   * The decision, then each run as the task's dedupe key and overlap policy allow. The decision stands once it is
   * written: a run that can't be requested then is made up by whoever follows the log, like that of a
   * scheduler that died here.
   */
  private async appendThenAsk(
    fires: StreamAppend,
    runs: readonly ScheduledRun[],
    rules: RequestRules,
    at: Moment,
  ): Promise<Written> {
    const { revision } = await this.store.append(fires.stream, fires.events, fires.expected);
    const skipped = new Map<string, string>();
    for (const run of runs) {
      try {
        const context = this.runContextOf(run, at);
        const requested = await requestRun(this.store, { ...run, rules, context });
        if (requested.kind === 'skipped') skipped.set(run.runId, requested.reason);
        this.onRequested(run.runId);
      } catch (error) {
        this.telemetry.log.warn('a run could not be requested; it will be made up', {
          run: run.runId,
          error,
        });
      }
    }
    return { revision, skipped };
  }

  private report(
    decision: FiresDecision,
    skipped: ReadonlyMap<string, string>,
    now: Instant,
  ): void {
    for (const event of decision.events) {
      if (event.type === 'Fired') {
        const lateness = (now - Date.parse(event.data.nominal)) / 1000;
        const outcome = skipped.get(event.data.run_id) ?? 'run';
        this.telemetry.count('fires_total', { outcome });
        this.telemetry.observe('fire_lateness_seconds', Math.max(0, lateness));
      } else if (event.type === 'FiresSkipped') {
        this.telemetry.count('fires_total', { outcome: event.data.reason }, event.data.count);
      }
    }
  }

  private contextOf(commandId: string, correlationId: string, at: Moment): CommandContext {
    const { now, traceparent } = at;
    return { commandId, actor: 'service', source: this.name, correlationId, traceparent, now };
  }

  private runContextOf({ runId, request }: ScheduledRun, at: Moment): CommandContext {
    return this.contextOf(requestCommandId(runId, request), runId, at);
  }
}

/** When something is decided, and as a part of which trace. */
type Moment = Pick<CommandContext, 'now' | 'traceparent'>;

/** A decision, and the time in which it is the right one: from `from`, and before `until`. */
interface DecidedAhead {
  readonly decision: FiresDecision;
  readonly missed: HoldView['missed'];
  readonly from: Instant;
  readonly until: Instant;
}

/** What became of a decision: the revision of its last event, and why which runs do not run. */
interface Written {
  readonly revision: number;
  readonly skipped: ReadonlyMap<string, string>;
}
