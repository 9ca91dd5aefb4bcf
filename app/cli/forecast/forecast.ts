import { fromIso, type Instant } from '../../../domain/clock.ts';
import { jitterOf } from '../../../domain/tasks/jitter.ts';
import { nextFireOf, nextRunOf, type Rhythm } from '../../../domain/tasks/rhythm.ts';
import { compileSchedule, ScheduleError } from '../../../domain/schedule/schedule.ts';
import { scheduleText } from '../../../domain/schedule/words/schedule-text.ts';
import { spread } from './forecast-spread.ts';
import { Starts, type Shift } from './forecast-starts.ts';

export const HOUR = 3_600_000;
export const MINUTE = 60_000;

/** Task ids that are kept of those who share a rule. */
const NAMED = 3;
/** How many peaks of a kind are told. */
const PEAKS = 5;
/** In how many hours the busiest minutes are looked for: first, and then if that was not enough. */
const BATCHES = [8, 40];
/** Compiled rules that are kept from one pass to the next. */
const MOST_COMPILED = 5000;

/** A moment at which much fires, and which tasks that is. */
export interface Peak {
  /** The beginning of the hour or minute. */
  readonly at: Instant;
  readonly fires: number;
  /** Those that contribute most, the greatest first. */
  readonly from: readonly Contribution[];
}

/** Tasks with one rule. */
export interface Contribution {
  readonly fires: number;
  /** How many tasks share the rule. */
  readonly tasks: number;
  /** The first few of them. */
  readonly taskIds: readonly string[];
  /** As the tasks have it: `cron 0 9 * * * Europe/Berlin`. */
  readonly rule: string;
  /** The rule in words. */
  readonly scheduleText: string;
}

/** What a fleet of tasks would fire. */
export interface Forecast {
  readonly from: Instant;
  readonly to: Instant;
  /** From the hour that `from` lies in. */
  readonly hours: readonly Moment[];
  readonly total: number;
  readonly tasks: {
    /** Time-based and active, with a fire ahead or not. */
    readonly counted: number;
    readonly paused: number;
    /** They fire by events, which nobody can foresee. */
    readonly byEvent: number;
    /** Active, but without any fire ahead. */
    readonly exhausted: number;
    /** Their rule can't be evaluated here. */
    readonly unreadable: number;
    /** With fires before the present that are not decided yet. */
    readonly overdue: number;
  };
  readonly busiestHours: readonly Peak[];
  readonly busiestMinutes: readonly Peak[];
  /** Every hour that could hold a busier minute was looked into. */
  readonly minutesProven: boolean;
}

interface Moment {
  readonly at: Instant;
  readonly fires: number;
}

/** Tasks whose fires are the same: one rule, one shift by jitter, the same bounds. */
interface Group {
  readonly rhythm: Pick<Rhythm, 'definition' | 'anchor'>;
  readonly shift: Shift;
  /** Fires at or before this are not counted. */
  readonly after: Instant;
  /** A fire that was put off: when it runs. */
  readonly snoozedTo: Instant | null;
  /** How many fires may still be requested. */
  readonly remaining: number;
  tasks: number;
  readonly taskIds: string[];
}

/**
 * Counts what tasks will fire, hour by hour, without going through the fires of dense rules: so a fleet of 100,000
 * tasks that fire each minute costs no more than one of them, and memory goes with the number of different rules.
 * Tasks are given one at a time by {@link add}; {@link count} then gives the whole.
 */
export class Forecaster {
  readonly #now: Instant;
  readonly #from: Instant;
  readonly #to: Instant;
  readonly #groups = new Map<string, Group>();
  readonly #compiled = new Map<Group, Starts>();
  readonly #lasts = new Map<Group, Instant>();
  #latest: { readonly group: Group; readonly starts: Starts } | null = null;
  readonly #tasks = {
    counted: 0,
    paused: 0,
    byEvent: 0,
    exhausted: 0,
    unreadable: 0,
    overdue: 0,
  };

  /** Fires are counted whose nominal time lies after `from`, and whose run starts up to and with `to`. */
  constructor(now: Instant, from: Instant, to: Instant) {
    this.#now = now;
    this.#from = from;
    this.#to = to;
  }

  add(taskId: string, rhythm: Rhythm): void {
    const { definition, status } = rhythm;
    if (status === 'canceled') return;
    if (definition.schedule_kind === 'event') {
      this.#tasks.byEvent += 1;
    } else if (status === 'paused') {
      this.#tasks.paused += 1;
    } else {
      this.#tasks.counted += 1;
      this.#addActive(taskId, rhythm);
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
        this.#spread(group, begin, begin + counts.length * HOUR, HOUR, (index, fires) => {
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
      busiestHours: this.#contributions(byFires.slice(0, PEAKS), HOUR),
      busiestMinutes: this.#contributions(minutes, MINUTE),
      minutesProven: proven,
    };
  }

  #addActive(taskId: string, rhythm: Rhythm): void {
    const { definition, anchor, fires } = rhythm;
    const next = nextFireOf(rhythm);
    const runAt = nextRunOf(rhythm);
    if (next === null || runAt === null) {
      this.#tasks.exhausted += 1;
      return;
    }
    if (fromIso(runAt) < this.#now) this.#tasks.overdue += 1;
    const snoozedTo = runAt === next ? null : fromIso(runAt);
    const max = definition.max_runs;
    const { jitter_seconds: jitterSeconds } = definition;
    const jitter = jitterOf(taskId, jitterSeconds * 1000);
    // Nominal times are whole seconds, so that parts of one change nothing.
    const milliseconds =
      definition.schedule_kind === 'once' ? jitter : Math.floor(jitter / 1000) * 1000;
    const group = {
      rhythm: { definition, anchor },
      shift: { jitterSeconds, milliseconds },
      // What is overdue is put through the misfire policy, which this does not foretell.
      after: Math.max(this.#now, snoozedTo ?? this.#now),
      snoozedTo: snoozedTo !== null && snoozedTo > this.#now ? snoozedTo : null,
      remaining: max === null ? Infinity : Math.max(0, max - (fires?.fire_count ?? 0)),
    };
    const { schedule_kind, schedule_expr, timezone, starts_at, ends_at } = definition;
    // Only a rule of RFC 5545 counts from the moment when it was set.
    const counted = schedule_kind === 'rrule' ? anchor : null;
    const rule = [schedule_kind, schedule_expr, timezone, starts_at, ends_at, counted];
    const key = JSON.stringify([...rule, group.shift, snoozedTo, group.remaining]);
    const known = this.#groups.get(key) ?? { ...group, tasks: 0, taskIds: [] };
    known.tasks += 1;
    if (known.taskIds.length < NAMED) known.taskIds.push(taskId);
    this.#groups.set(key, known);
  }

  /** When the runs of a group start; null where its rule can't be evaluated. */
  #startsOf(group: Group): Starts | null {
    const kept = this.#latest?.group === group ? this.#latest.starts : this.#compiled.get(group);
    if (kept !== undefined) return kept;
    const { definition, anchor } = group.rhythm;
    try {
      const schedule = compileSchedule({
        kind: definition.schedule_kind,
        expr: definition.schedule_expr,
        timezone: definition.timezone,
        anchor: fromIso(anchor),
        startsAt: definition.starts_at === null ? null : fromIso(definition.starts_at),
        endsAt: definition.ends_at === null ? null : fromIso(definition.ends_at),
      });
      const starts = new Starts(schedule, group.shift);
      this.#latest = { group, starts };
      if (this.#compiled.size < MOST_COMPILED) this.#compiled.set(group, starts);
      return starts;
    } catch (error) {
      if (error instanceof ScheduleError) return null;
      throw error;
    }
  }

  /** Counts one task's starts from `begin` to before `end`, in stretches of `unit`. */
  #spread(
    group: Group,
    begin: Instant,
    end: Instant,
    unit: number,
    add: (index: number, fires: number) => void,
  ): void {
    const starts = this.#startsOf(group);
    if (starts === null || group.remaining === 0) return;
    const { snoozedTo } = group;
    const put = snoozedTo === null ? null : starts.of(snoozedTo);
    if (put !== null && put > this.#from && put <= this.#to && put >= begin && put < end) {
      add(Math.floor((put - begin) / unit), 1);
    }
    const after = Math.max(starts.before(group.after), starts.before(this.#from), begin - 1);
    const upTo = Math.min(this.#lastOf(group, starts), end - 1);
    spread({ schedule: starts, after, upTo, begin, unit }, add);
  }

  /** The moment up to which a group's runs start within the span. */
  #lastOf(group: Group, starts: Starts): Instant {
    const { after, snoozedTo } = group;
    const remaining = group.remaining - (snoozedTo === null ? 0 : 1);
    let high = this.#to;
    if (!Number.isFinite(remaining)) return high;
    const known = this.#lasts.get(group);
    if (known !== undefined) return known;
    const since = starts.before(after);
    let low = since;
    const within = (upTo: Instant): boolean => starts.countBetween(since, upTo).count <= remaining;
    if (low >= high || within(high)) low = high;
    // Between `low`, up to where there are not too many, and `high`, where there are.
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (within(middle)) low = middle;
      else high = middle;
    }
    this.#lasts.set(group, low);
    return low;
  }

  /**
   * No minute is busier than its hour: from the busiest hours on, until no other can hold a busier minute. Each
   * batch is one pass over the rules, as compiling them again is what costs where there are many.
   */
  #busiestMinutes(byFires: readonly Moment[]): {
    readonly minutes: readonly Moment[];
    readonly proven: boolean;
  } {
    let minutes: Moment[] = [];
    let looked = 0;
    for (const batch of BATCHES) {
      const hours = byFires.slice(looked, looked + batch);
      const counts = hours.map(() => new Float64Array(HOUR / MINUTE));
      for (const group of this.#groups.values()) {
        for (const [place, { at }] of hours.entries()) {
          const of = counts[place];
          this.#spread(group, at, at + HOUR, MINUTE, (index, fires) => {
            if (of !== undefined) of[index] = (of[index] ?? 0) + fires * group.tasks;
          });
        }
      }
      const found = hours.flatMap(({ at }, place) =>
        [...(counts[place] ?? [])].map((fires, index) => ({ at: at + index * MINUTE, fires })),
      );
      minutes = [...minutes, ...found.filter(({ fires }) => fires > 0)]
        .sort(busier)
        .slice(0, PEAKS);
      looked += hours.length;
      const next = byFires[looked];
      if (next === undefined || (minutes[PEAKS - 1]?.fires ?? 0) >= next.fires) {
        return { minutes, proven: true };
      }
    }
    return { minutes, proven: false };
  }

  #contributions(peaks: readonly Moment[], unit: number): readonly Peak[] {
    const of = peaks.map((): Contribution[] => []);
    for (const group of this.#groups.values()) {
      const { tasks, taskIds, rhythm } = group;
      const { schedule_kind: kind, schedule_expr: expr, timezone } = rhythm.definition;
      const rule = `${kind} ${expr ?? ''} ${timezone}`;
      const anchor = fromIso(rhythm.anchor);
      const words = scheduleText({ kind, expr, timezone, anchor });
      for (const [place, { at }] of peaks.entries()) {
        this.#spread(group, at, at + unit, unit, (_, each) => {
          const from = of[place] ?? [];
          from.push({ fires: each * tasks, tasks, taskIds, rule, scheduleText: words });
          if (from.length > 4 * NAMED) of[place] = greatest(from);
        });
      }
    }
    return peaks.map(({ at, fires }, place) => ({ at, fires, from: greatest(of[place] ?? []) }));
  }
}

const busier = (a: Moment, b: Moment): number => b.fires - a.fires || a.at - b.at;

const greatest = (from: readonly Contribution[]): Contribution[] =>
  [...from].sort((a, b) => b.fires - a.fires).slice(0, NAMED);
