import { fromIso, type Instant } from '../../../domain/clock.ts';
import { ScheduleError } from '../../../domain/schedule/schedule.ts';
import { scheduleText } from '../../../domain/schedule/words/schedule-text.ts';
import { jitterOf } from '../../../domain/tasks/jitter.ts';
import { nextFireOf, nextRunOf, type ScheduleState } from '../../../domain/tasks/schedule-state.ts';
import { compileRule } from '../../../domain/tasks/task-schedule.ts';
import { RunStarts, type Shift } from './run-starts.ts';

export const HOUR = 3_600_000;
export const MINUTE = 60_000;

/** Task ids kept for each rule, and rules named for each peak. */
const MAX_NAMED = 3;
/** Peaks of each kind. */
const MAX_PEAKS = 5;
/** Hours searched for the busiest minutes: first, and then if that did not prove them. */
const SEARCH_BATCHES = [8, 40];
/** Compiled rules kept between passes. */
const MAX_COMPILED = 5000;

/** A busy hour or minute. */
export interface Peak {
  /** Its start. */
  readonly at: Instant;
  readonly fires: number;
  /** The greatest contributions, greatest first. */
  readonly from: readonly Contribution[];
}

/** Tasks with one rule. */
interface Contribution {
  readonly fires: number;
  /** How many tasks share the rule. */
  readonly tasks: number;
  /** The first few of them. */
  readonly taskIds: readonly string[];
  /** `cron 0 9 * * * Europe/Berlin` */
  readonly rule: string;
  /** The rule in words. */
  readonly scheduleText: string;
}

interface Fires {
  readonly at: Instant;
  readonly fires: number;
}

/** The fires of all tasks in a span. */
export interface Forecast {
  readonly from: Instant;
  readonly to: Instant;
  /** The hours, starting with the hour of `from`. */
  readonly hours: readonly Fires[];
  readonly total: number;
  readonly tasks: {
    /** Time-based and active. */
    readonly counted: number;
    readonly paused: number;
    readonly byEvent: number;
    /** Active, but without a fire ahead. */
    readonly exhausted: number;
    /** Active, but with a rule that cannot be evaluated here. */
    readonly unreadable: number;
    /** Active, with undecided fires before the present. */
    readonly overdue: number;
  };
  readonly busiestHours: readonly Peak[];
  readonly busiestMinutes: readonly Peak[];
  /** Whether every hour that could contain a busier minute was searched. */
  readonly minutesProven: boolean;
}

/** Tasks with the same fires: one rule, one jitter, the same bounds. */
interface Group {
  readonly state: Pick<ScheduleState, 'definition' | 'anchor'>;
  readonly shift: Shift;
  /** Fires at or before this are not counted. */
  readonly after: Instant;
  /** When a snoozed fire runs. */
  readonly snoozedTo: Instant | null;
  /** Fires left by `max_runs`. */
  readonly remaining: number;
  tasks: number;
  readonly taskIds: string[];
}

/**
 * Counts future fires by hour without walking dense rules: 100,000 tasks that fire each minute cost as much as one, and
 * memory grows with the number of different rules. {@link add} takes the tasks, {@link count} returns the result.
 */
export class Forecaster {
  readonly #now: Instant;
  readonly #from: Instant;
  readonly #to: Instant;
  readonly #groups = new Map<string, Group>();
  readonly #compiled = new Map<Group, RunStarts>();
  readonly #ends = new Map<Group, Instant>();
  #latest: { readonly group: Group; readonly starts: RunStarts } | null = null;
  readonly #tasks = {
    counted: 0,
    paused: 0,
    byEvent: 0,
    exhausted: 0,
    unreadable: 0,
    overdue: 0,
  };

  /** Counts fires with a nominal time after `from` whose run starts at or before `to`. */
  constructor(now: Instant, from: Instant, to: Instant) {
    this.#now = now;
    this.#from = from;
    this.#to = to;
  }

  add(taskId: string, schedule: ScheduleState): void {
    const { definition, status } = schedule;
    if (status === 'canceled') return;
    if (definition.schedule_kind === 'event') {
      this.#tasks.byEvent += 1;
    } else if (status === 'paused') {
      this.#tasks.paused += 1;
    } else {
      this.#tasks.counted += 1;
      this.#addActive(taskId, schedule);
    }
  }

  count(): Forecast {
    const begin = Math.floor(this.#from / HOUR) * HOUR;
    const counts = new Float64Array(Math.floor((this.#to - begin) / HOUR) + 1);
    for (const [key, group] of this.#groups) {
      if (this.#startsOf(group) === null) {
        this.#tasks.unreadable += group.tasks;
        this.#groups.delete(key);
      } else {
        this.#countByPeriod(group, begin, begin + counts.length * HOUR, HOUR, (index, fires) => {
          counts[index] = (counts[index] ?? 0) + fires * group.tasks;
        });
      }
    }
    const hours = [...counts].map((fires, index) => ({ at: begin + index * HOUR, fires }));
    const byFires = hours.filter(({ fires }) => fires > 0).sort(busier);
    const { minutes, proven } = this.#busiestMinutes(byFires);
    return {
      from: this.#from,
      to: this.#to,
      hours,
      total: counts.reduce((sum, fires) => sum + fires, 0),
      tasks: { ...this.#tasks },
      busiestHours: this.#withContributions(byFires.slice(0, MAX_PEAKS), HOUR),
      busiestMinutes: this.#withContributions(minutes, MINUTE),
      minutesProven: proven,
    };
  }

  #addActive(taskId: string, schedule: ScheduleState): void {
    const { definition, anchor, fires } = schedule;
    const next = nextFireOf(schedule);
    const runAt = nextRunOf(schedule);
    if (next === null || runAt === null) {
      this.#tasks.exhausted += 1;
      return;
    }
    if (fromIso(runAt) < this.#now) this.#tasks.overdue += 1;
    const snoozedTo = runAt === next ? null : fromIso(runAt);
    const { max_runs, jitter_seconds: jitterSeconds } = definition;
    const jitter = jitterOf(taskId, jitterSeconds * 1000);
    // Nominal times are whole seconds, so fractions of one make no difference.
    const milliseconds =
      definition.schedule_kind === 'once' ? jitter : Math.floor(jitter / 1000) * 1000;
    const group = {
      state: { definition, anchor },
      shift: { jitterSeconds, milliseconds },
      // Overdue fires follow the misfire policy, which is not forecast.
      after: Math.max(this.#now, snoozedTo ?? this.#now),
      snoozedTo: snoozedTo !== null && snoozedTo > this.#now ? snoozedTo : null,
      remaining: max_runs === null ? Infinity : Math.max(0, max_runs - (fires?.fire_count ?? 0)),
    };
    const { schedule_kind, schedule_expr, timezone, starts_at, ends_at } = definition;
    // Only rules of RFC 5545 depend on the anchor.
    const phase = schedule_kind === 'rrule' ? anchor : null;
    const rule = [schedule_kind, schedule_expr, timezone, starts_at, ends_at, phase];
    const key = JSON.stringify([...rule, group.shift, snoozedTo, group.remaining]);
    const known = this.#groups.get(key) ?? { ...group, tasks: 0, taskIds: [] };
    known.tasks += 1;
    if (known.taskIds.length < MAX_NAMED) known.taskIds.push(taskId);
    this.#groups.set(key, known);
  }

  /** When the runs of a group start; null if its rule cannot be evaluated. */
  #startsOf(group: Group): RunStarts | null {
    const known = this.#latest?.group === group ? this.#latest.starts : this.#compiled.get(group);
    if (known !== undefined) return known;
    try {
      const { definition, anchor } = group.state;
      const starts = new RunStarts(compileRule(definition, anchor), group.shift);
      this.#latest = { group, starts };
      if (this.#compiled.size < MAX_COMPILED) this.#compiled.set(group, starts);
      return starts;
    } catch (error) {
      if (error instanceof ScheduleError) return null;
      throw error;
    }
  }

  /** Counts one task's starts from `begin` to before `end`, by periods. */
  #countByPeriod(
    group: Group,
    begin: Instant,
    end: Instant,
    period: number,
    add: (index: number, fires: number) => void,
  ): void {
    const starts = this.#startsOf(group);
    if (starts === null || group.remaining === 0) return;
    const snoozed = group.snoozedTo === null ? null : starts.of(group.snoozedTo);
    const isInSpan = snoozed !== null && snoozed > this.#from && snoozed <= this.#to;
    if (isInSpan && snoozed >= begin && snoozed < end) {
      add(Math.floor((snoozed - begin) / period), 1);
    }
    const after = Math.max(starts.lastFor(group.after), starts.lastFor(this.#from), begin - 1);
    const upTo = Math.min(this.#endOf(group, starts), end - 1);
    starts.countByPeriod({ after, upTo, begin, period }, add);
  }

  /** The instant up to which a group's runs start: the end of the span, or earlier by `max_runs`. */
  #endOf(group: Group, starts: RunStarts): Instant {
    const { after, snoozedTo } = group;
    const remaining = group.remaining - (snoozedTo === null ? 0 : 1);
    if (!Number.isFinite(remaining)) return this.#to;
    const known = this.#ends.get(group);
    if (known !== undefined) return known;
    const since = starts.lastFor(after);
    const isWithin = (upTo: Instant): boolean =>
      starts.countBetween(since, upTo).count <= remaining;
    let [low, high] = [since, this.#to];
    if (low >= high || isWithin(high)) low = high;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (isWithin(middle)) low = middle;
      else high = middle;
    }
    this.#ends.set(group, low);
    return low;
  }

  /**
   * Searches hours from the busiest on, because no minute is busier than its hour. Each batch is one pass over the rules:
   * compiling many rules again is the expensive part.
   */
  #busiestMinutes(byFires: readonly Fires[]): {
    readonly minutes: readonly Fires[];
    readonly proven: boolean;
  } {
    let minutes: Fires[] = [];
    let searched = 0;
    for (const batch of SEARCH_BATCHES) {
      const hours = byFires
        .slice(searched, searched + batch)
        .map(({ at }) => ({ at, counts: new Float64Array(HOUR / MINUTE) }));
      for (const group of this.#groups.values()) {
        for (const { at, counts } of hours) {
          this.#countByPeriod(group, at, at + HOUR, MINUTE, (index, fires) => {
            counts[index] = (counts[index] ?? 0) + fires * group.tasks;
          });
        }
      }
      const found = hours.flatMap(({ at, counts }) =>
        [...counts].map((fires, index) => ({ at: at + index * MINUTE, fires })),
      );
      minutes = [...minutes, ...found.filter(({ fires }) => fires > 0)]
        .sort(busier)
        .slice(0, MAX_PEAKS);
      searched += hours.length;
      const next = byFires[searched];
      if (next === undefined || (minutes[MAX_PEAKS - 1]?.fires ?? 0) >= next.fires) {
        return { minutes, proven: true };
      }
    }
    return { minutes, proven: false };
  }

  #withContributions(peaks: readonly Fires[], period: number): readonly Peak[] {
    const found = peaks.map((peak) => ({ ...peak, from: [] as Contribution[] }));
    for (const group of this.#groups.values()) {
      const { tasks, taskIds, state: schedule } = group;
      const { schedule_kind: kind, schedule_expr: expr, timezone } = schedule.definition;
      const rule = `${kind} ${expr ?? ''} ${timezone}`;
      const words = scheduleText({ kind, expr, timezone, anchor: fromIso(schedule.anchor) });
      for (const peak of found) {
        this.#countByPeriod(group, peak.at, peak.at + period, period, (_, each) => {
          peak.from.push({ fires: each * tasks, tasks, taskIds, rule, scheduleText: words });
          if (peak.from.length > 4 * MAX_NAMED) peak.from = greatest(peak.from);
        });
      }
    }
    return found.map((peak) => ({ ...peak, from: greatest(peak.from) }));
  }
}

const busier = (a: Fires, b: Fires): number => b.fires - a.fires || a.at - b.at;

const greatest = (from: readonly Contribution[]): Contribution[] =>
  [...from].sort((a, b) => b.fires - a.fires).slice(0, MAX_NAMED);
