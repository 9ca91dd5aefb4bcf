import type { Instant } from '../../domain/clock.ts';
import { percentileOf } from '../views/histogram.ts';
import { QUARTER, startOfDay, type DayDocument, type Quarter } from '../views/statistics-days.ts';
import type { Bucket } from './statistics-periods.ts';

const DAY = 86_400_000;

/**
 * The instant of a day that stands for unknown quarter hours. Older releases counted runs without their quarter hours.
 */
const NOON = DAY / 2;

/** The figures of a period. Rates and durations are null if nothing ran. */
export interface Figures {
  readonly total_runs: number;
  readonly successful_runs: number;
  readonly failed_runs: number;
  readonly skipped_runs: number;
  readonly success_rate: number | null;
  readonly failure_rate: number | null;
  readonly avg_execution_time_seconds: number | null;
  /** Accurate to 1.5 %, like p95. */
  readonly p50_execution_time_seconds: number | null;
  readonly p95_execution_time_seconds: number | null;
}

/** Sums of runs over several quarter hours or days. */
export class Sum {
  total = 0;
  failed = 0;
  skipped = 0;
  ms = 0;
  readonly #histogram: Record<string, number> = {};

  add({ total, failed, execution_ms, histogram, skipped = 0 }: Quarter): void {
    this.total += total;
    this.failed += failed;
    this.skipped += skipped;
    this.ms += execution_ms;
    for (const bucket in histogram) {
      this.#histogram[bucket] = (this.#histogram[bucket] ?? 0) + (histogram[bucket] ?? 0);
    }
  }

  figures(): Figures {
    const { total, failed, skipped, ms } = this;
    const successful = total - failed;
    const histogram = this.#histogram;
    return {
      total_runs: total,
      successful_runs: successful,
      failed_runs: failed,
      skipped_runs: skipped,
      success_rate: total === 0 ? null : successful / total,
      failure_rate: total === 0 ? null : failed / total,
      avg_execution_time_seconds: total === 0 ? null : rounded(ms / total / 1000),
      p50_execution_time_seconds: inSeconds(percentileOf(histogram, 0.5)),
      p95_execution_time_seconds: inSeconds(percentileOf(histogram, 0.95)),
    };
  }
}

/**
 * The runs of days by bucket, without runs outside all buckets.
 * @param buckets ascending, each ending where the next starts
 */
export function sumsOf(buckets: readonly Bucket[], days: Iterable<DayDocument>): readonly Sum[] {
  const sums = buckets.map(() => new Sum());
  for (const day of days) {
    const start = startOfDay(day.day);
    const whole = bucketAt(buckets, start);
    if (whole !== -1 && (buckets[whole]?.end ?? 0) >= start + DAY) {
      sums[whole]?.add(day);
      continue;
    }
    for (const { at, quarter } of quartersOf(day, start)) sums[bucketAt(buckets, at)]?.add(quarter);
  }
  return sums;
}

/** The bucket that holds an instant; -1 for none. */
export function bucketAt(buckets: readonly Bucket[], at: Instant): number {
  let [low, high] = [0, buckets.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const bucket = buckets[middle];
    if (bucket === undefined) return -1;
    if (at < bucket.start) high = middle - 1;
    else if (at >= bucket.end) low = middle + 1;
    else return middle;
  }
  return -1;
}

/** Six decimals: finer than any clock here, without binary rounding noise. */
export function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

function* quartersOf(
  day: DayDocument,
  start: Instant,
): Generator<{ readonly at: Instant; readonly quarter: Quarter }> {
  const { quarters = {} } = day;
  let left = day.total;
  for (const number in quarters) {
    const quarter = quarters[number];
    if (quarter === undefined) continue;
    left -= quarter.total;
    yield { at: start + Number(number) * QUARTER, quarter };
  }
  if (left > 0) yield { at: start + NOON, quarter: restOf(day) };
}

/** The runs of a day that are missing in its quarter hours. */
function restOf(day: DayDocument): Quarter {
  const histogram: Record<string, number> = { ...day.histogram };
  let { total, failed, execution_ms } = day;
  for (const quarter of Object.values(day.quarters ?? {})) {
    total -= quarter.total;
    failed -= quarter.failed;
    execution_ms -= quarter.execution_ms;
    for (const [bucket, count] of Object.entries(quarter.histogram)) {
      histogram[bucket] = (histogram[bucket] ?? 0) - count;
    }
  }
  return { total, failed, execution_ms, histogram };
}

function inSeconds(milliseconds: number | null): number | null {
  return milliseconds === null ? null : rounded(milliseconds / 1000);
}
