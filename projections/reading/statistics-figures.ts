import { toIso, type Instant } from '../../domain/clock.ts';
import { mergeHistograms, percentileOf } from '../views/histogram.ts';
import { emptyDay, type DayDocument } from '../views/statistics.ts';

const DAY_MS = 86_400_000;

/** One day; days without runs are included. */
export interface DayStatistics extends Figures {
  readonly date: string;
}

/** The figures of a day or of a whole period. Rates and durations are null if nothing ran. */
export interface Figures {
  readonly total_runs: number;
  readonly successful_runs: number;
  readonly failed_runs: number;
  readonly success_rate: number | null;
  readonly failure_rate: number | null;
  readonly avg_execution_time_seconds: number | null;
  /** Within 1.5 %, like p95. */
  readonly p50_execution_time_seconds: number | null;
  readonly p95_execution_time_seconds: number | null;
}

/** The response of `GET /task/{id}/stats`. */
export interface TaskStatistics extends Figures {
  readonly task_id: string;
  readonly period_days: number;
  /** Within the period, like the next two. */
  readonly last_run: string | null;
  readonly last_success: string | null;
  readonly last_failure: string | null;
  /** Ascending, one for each day of the period. */
  readonly by_day: readonly DayStatistics[];
}

/** The response of `GET /stats/summary`. */
export interface StatisticsSummary extends Figures {
  readonly period_days: number;
  readonly total_tasks_executed: number;
  /** Over all days of the period, including those without runs. */
  readonly runs_per_day: number;
  readonly by_day: readonly DayStatistics[];
}

/** The first day of a period of UTC days that ends today, as `YYYY-MM-DD`. */
export function firstDayOf(periodDays: number, now: Instant): string {
  return toIso(now - (periodDays - 1) * DAY_MS).slice(0, 10);
}

/**
 * The statistics of a task.
 * @param days of the task, from {@link firstDayOf} on; days without runs may be missing
 */
export function taskStatistics(
  taskId: string,
  periodDays: number,
  days: readonly DayDocument[],
  now: Instant,
): TaskStatistics {
  return {
    task_id: taskId,
    period_days: periodDays,
    ...figuresOf(days),
    last_run: latest(days.map((day) => day.last_run)),
    last_success: latest(days.map((day) => day.last_success)),
    last_failure: latest(days.map((day) => day.last_failure)),
    by_day: everyDay(periodDays, days, now),
  };
}

/**
 * The statistics of all tasks.
 * @param days over all tasks, from {@link firstDayOf} on; days without runs may be missing
 */
export function statisticsSummary(
  periodDays: number,
  days: readonly DayDocument[],
  tasksExecuted: number,
  now: Instant,
): StatisticsSummary {
  const figures = figuresOf(days);
  return {
    period_days: periodDays,
    ...figures,
    total_tasks_executed: tasksExecuted,
    runs_per_day: rounded(figures.total_runs / periodDays),
    by_day: everyDay(periodDays, days, now),
  };
}

function figuresOf(days: readonly DayDocument[]): Figures {
  const sum = (field: 'total' | 'successful' | 'failed' | 'execution_ms'): number =>
    days.reduce((total, day) => total + day[field], 0);
  const total = sum('total');
  const successful = sum('successful');
  const failed = sum('failed');
  const histogram = mergeHistograms(days.map((day) => day.histogram));
  return {
    total_runs: total,
    successful_runs: successful,
    failed_runs: failed,
    success_rate: total === 0 ? null : successful / total,
    failure_rate: total === 0 ? null : failed / total,
    avg_execution_time_seconds: total === 0 ? null : inSeconds(sum('execution_ms') / total),
    p50_execution_time_seconds: inSeconds(percentileOf(histogram, 0.5)),
    p95_execution_time_seconds: inSeconds(percentileOf(histogram, 0.95)),
  };
}

function everyDay(
  periodDays: number,
  days: readonly DayDocument[],
  now: Instant,
): readonly DayStatistics[] {
  // Of several namespaces, each has its own document of a day.
  const known = new Map<string, DayDocument[]>();
  for (const day of days) {
    const same = known.get(day.day);
    if (same === undefined) known.set(day.day, [day]);
    else same.push(day);
  }
  return Array.from({ length: periodDays }, (_, index) => {
    const date = firstDayOf(periodDays - index, now);
    return { date, ...figuresOf(known.get(date) ?? [emptyDay('', date)]) };
  });
}

function inSeconds<T extends number | null>(milliseconds: T): T {
  return (milliseconds === null ? null : rounded(milliseconds / 1000)) as T;
}

/** Six decimals: finer than any clock here, without binary rounding noise. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

function latest(times: readonly (string | null)[]): string | null {
  return times.reduce((one, other) => (other !== null && (one ?? '') < other ? other : one), null);
}
