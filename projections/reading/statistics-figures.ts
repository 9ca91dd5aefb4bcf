import { toIso } from '../../domain/clock.ts';
import type { DayDocument } from '../views/statistics-days.ts';
import { hoursOf, type Bucket, type Period } from './statistics-periods.ts';
import { Sum, rounded, sumsOf, type Figures } from './statistics-sums.ts';

/** One day of the zone; days without runs are included. */
export interface DayStatistics extends Figures {
  readonly date: string;
  /** The start of the day. */
  readonly start: string;
}

/** One hour of the zone; hours without runs are included. */
export interface HourStatistics extends Figures {
  readonly start: string;
}

/** The requested division of the figures. */
export interface Division {
  readonly period: Period;
  /** Whether also by hour. */
  readonly isHourly: boolean;
}

interface Divided {
  readonly timezone: string;
  /** Ascending, one for each day of the period. */
  readonly by_day: readonly DayStatistics[];
  /** Ascending, one for each hour of the period; only if requested. */
  readonly by_hour?: readonly HourStatistics[];
}

/** The response of `GET /task/{id}/stats`. */
export interface TaskStatistics extends Figures, Divided {
  readonly task_id: string;
  readonly period_days: number;
  /** In the period, as in the next two fields. */
  readonly last_run: string | null;
  readonly last_success: string | null;
  readonly last_failure: string | null;
}

/** The response of `GET /stats/summary`. */
export interface StatisticsSummary extends Figures, Divided {
  readonly period_days: number;
  readonly total_tasks_executed: number;
  /** Over all days of the period, including those without runs. */
  readonly runs_per_day: number;
}

/** The first UTC day that overlaps a period. Documents from that day on are needed. */
export function firstUtcDayOf({ start }: Period): string {
  return toIso(start).slice(0, 10);
}

/**
 * The statistics of a task.
 * @param days of the task, from {@link firstUtcDayOf} on; days without runs may be missing
 */
export function taskStatistics(
  taskId: string,
  division: Division,
  days: readonly DayDocument[],
): TaskStatistics {
  const start = toIso(division.period.start);
  const latest = (field: 'last_run' | 'last_success' | 'last_failure'): string | null =>
    days.reduce<string | null>((one, { [field]: other }) => {
      return other !== null && other >= start && other > (one ?? '') ? other : one;
    }, null);
  return {
    task_id: taskId,
    period_days: Math.ceil(division.period.length),
    ...figuresOf(division, days),
    last_run: latest('last_run'),
    last_success: latest('last_success'),
    last_failure: latest('last_failure'),
    ...dividedBy(division, days),
  };
}

/**
 * The statistics of all tasks.
 * @param days over all tasks, from {@link firstUtcDayOf} on; days without runs may be missing
 */
export function statisticsSummary(
  division: Division,
  days: readonly DayDocument[],
  tasksExecuted: number,
): StatisticsSummary {
  const figures = figuresOf(division, days);
  const { length } = division.period;
  return {
    period_days: Math.ceil(length),
    ...figures,
    total_tasks_executed: tasksExecuted,
    runs_per_day: rounded(figures.total_runs / length),
    ...dividedBy(division, days),
  };
}

/** The figures of a whole period. */
export function figuresOf({ period }: Division, days: readonly DayDocument[]): Figures {
  const [sum = new Sum()] = sumsOf([{ ...period, date: '' }], days);
  return sum.figures();
}

function dividedBy({ period, isHourly }: Division, days: readonly DayDocument[]): Divided {
  const by_day = divided(period.days, days).map(({ bucket, figures }) => {
    return { date: bucket.date, start: toIso(bucket.start), ...figures };
  });
  const timezone = period.zone.name;
  if (!isHourly) return { timezone, by_day };
  const by_hour = divided(hoursOf(period), days).map(({ bucket, figures }) => {
    return { start: toIso(bucket.start), ...figures };
  });
  return { timezone, by_day, by_hour };
}

function divided(
  buckets: readonly Bucket[],
  days: readonly DayDocument[],
): readonly { readonly bucket: Bucket; readonly figures: Figures }[] {
  const sums = sumsOf(buckets, days);
  return buckets.map((bucket, n) => {
    return { bucket, figures: (sums[n] ?? new Sum()).figures() };
  });
}
