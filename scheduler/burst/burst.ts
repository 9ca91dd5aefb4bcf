import { fromIso, type Cancel, type Clock, type Instant } from '../../domain/clock.ts';
import { decideFires } from '../../domain/tasks/fires.ts';
import { graceOf } from '../../domain/tasks/grace.ts';
import { nextRunOf, type ScheduleState } from '../../domain/tasks/schedule-state.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { DueEntry, DueIndex } from '../fires/due-index.ts';
import type { FireWriter, PreparedFires } from '../fires/fire-writer.ts';
import type { HoldView } from '../hold.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { SchedulerBurst, Timer } from '../scheduler.ts';
import type { EarlyStarts } from './early-starts.ts';

/** The number of tasks prepared per turn of the event loop. */
const CHUNK = 64;

/** How long before a task is due it is prepared. Milliseconds. */
const LEAD_TIME = 2_000;

export interface BurstOptions {
  readonly index: DueIndex;
  readonly writer: FireWriter;
  readonly hold: HoldView;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly telemetry: Telemetry;
  /** Loads the tasks whose runs are about to be requested. */
  readonly tasks?: Pick<PinnedTasks, 'prepare'> | undefined;
  readonly early?: EarlyStarts | undefined;
  /** Called with the tasks that are prepared, two seconds before the first is due. */
  readonly onPrepare?: ((entries: readonly DueEntry[]) => void) | undefined;
}

/** A prepared decision, valid from `from` and before `until`. */
interface Prepared {
  readonly fires: PreparedFires;
  readonly missed: HoldView['missed'];
  readonly from: Instant;
  readonly until: Instant;
}

/**
 * Prepares for many tasks that are due at one instant: their decisions, requests and starts are made two seconds ahead.
 * A decision stays the same from the time when a fire is due until the next fire is due, or until this fire counts as
 * missed.
 */
export class Burst implements SchedulerBurst {
  readonly #options: BurstOptions;
  readonly #prepared = new WeakMap<ScheduleState, Prepared>();
  #preparedUpTo: Instant = Number.NEGATIVE_INFINITY;
  #cancelTimer: Cancel = () => {};
  #timerAt: Instant | null = null;
  #stopped = false;

  constructor(options: BurstOptions) {
    this.#options = options;
  }

  expect(earliest: Instant): void {
    if (earliest <= this.#preparedUpTo || this.#stopped) return;
    const { clock, timer, index, hold } = this.#options;
    const at = earliest - LEAD_TIME;
    if (at <= clock.now()) {
      this.#prepareAll();
    } else if (this.#timerAt !== at) {
      this.#cancelTimer();
      this.#timerAt = at;
      this.#cancelTimer = timer(at, () => {
        this.#timerAt = null;
        const next = index.earliest();
        if (next !== null && !hold.held) this.expect(next);
      });
    }
  }

  take({ state }: DueEntry, now: Instant): PreparedFires | null {
    const prepared = this.#prepared.get(state);
    // Used only once, because its events have their own ids.
    this.#prepared.delete(state);
    const isValid = prepared?.missed === this.#options.hold.missed;
    if (prepared === undefined || !isValid) return null;
    return prepared.from <= now && now < prepared.until ? prepared.fires : null;
  }

  holdEnds(now: Instant): void {
    this.#options.early?.holdEnds(now);
  }

  releaseEnds(): void {
    this.#options.early?.releaseEnds();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer();
    this.releaseEnds();
  }

  #prepareAll(): void {
    const { index, clock, onPrepare } = this.#options;
    this.#cancelTimer();
    this.#timerAt = null;
    this.#preparedUpTo = clock.now() + 2 * LEAD_TIME;
    const entries = index.soon(this.#preparedUpTo);
    this.#prepareFrom(entries, 0);
    onPrepare?.(entries);
  }

  #prepareFrom(entries: readonly DueEntry[], from: number): void {
    const { tasks, telemetry } = this.#options;
    const chunk = entries.slice(from, from + CHUNK);
    for (const { taskId, state } of chunk) tasks?.prepare(taskId, state.task_revision);
    setImmediate(() => {
      for (const entry of chunk) {
        if (this.#stopped) return;
        try {
          this.#prepare(entry);
        } catch (error) {
          telemetry.log.debug('could not prepare a task', { task: entry.taskId, error });
        }
      }
      if (from + CHUNK < entries.length) this.#prepareFrom(entries, from + CHUNK);
    });
  }

  #prepare(entry: DueEntry): void {
    const { index, hold, writer, early, telemetry } = this.#options;
    const { taskId, state } = entry;
    const due = nextRunOf(state);
    if (due === null || state.owed.length > 0 || this.#prepared.has(state)) return;
    const from = fromIso(due);
    const { missed } = hold;
    const decision = decideFires(taskId, state, index.scheduleOf(entry), from, missed);
    const last = decision.events.at(-1);
    if (last === undefined) return;
    const { next_fire_at } = last.data;
    const next = next_fire_at === null ? Number.POSITIVE_INFINITY : fromIso(next_fire_at);
    const until = Math.min(next, from + graceOf(state.definition));
    // The trace of a fire begins when it is written.
    const appends =
      telemetry.traces === undefined ? writer.prepare(entry, decision, from) : undefined;
    if (appends !== undefined && appends.requests.length > 0) early?.prepare(decision.runs, from);
    this.#prepared.set(state, { fires: { decision, appends }, missed, from, until });
  }
}
