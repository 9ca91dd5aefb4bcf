/**
 * A histogram over a logarithmic scale: how often a duration fell into each bucket. Percentiles are off by at most 1.5
 * %. A day's durations between a millisecond and a day fill fewer than 620 buckets.
 */
export type Histogram = { readonly [bucket: string]: number };

/** The largest relative error of a percentile; the interface promises 2 %. */
const ERROR = 0.015;
const GROWTH = (1 + ERROR) / (1 - ERROR);
const LOG_GROWTH = Math.log(GROWTH);

/** The bucket of durations under a millisecond, the resolution of the service's times. */
const ZERO_BUCKET = 'zero';

/** A copy with one more duration. */
export function withDuration(histogram: Histogram, milliseconds: number): Histogram {
  return addDuration({ ...histogram }, milliseconds);
}

/**
 * Adds a duration in place, for a histogram that no other code holds. Copying hundreds of buckets for each run of a
 * batch would cost more than the rest of its statistics.
 */
export function addDuration(histogram: Record<string, number>, milliseconds: number): Histogram {
  const bucket = bucketOf(milliseconds);
  histogram[bucket] = (histogram[bucket] ?? 0) + 1;
  return histogram;
}

/** Merges histograms into one. */
export function mergeHistograms(histograms: readonly Histogram[]): Histogram {
  const merged: Record<string, number> = {};
  for (const histogram of histograms) {
    for (const [bucket, count] of Object.entries(histogram)) {
      merged[bucket] = (merged[bucket] ?? 0) + count;
    }
  }
  return merged;
}

/**
 * The smallest duration, in milliseconds and within 1.5 %, that at least this share of all durations does not exceed;
 * null for an empty histogram.
 * @param share 0..1
 */
export function percentileOf(histogram: Histogram, share: number): number | null {
  const buckets = Object.entries(histogram)
    .map(([bucket, count]) => ({ bucket: bucket === ZERO_BUCKET ? null : Number(bucket), count }))
    .sort((one, other) => (one.bucket ?? -1) - (other.bucket ?? -1));
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  const rank = Math.max(1, Math.ceil(share * total));
  let seen = 0;
  for (const { bucket, count } of buckets) {
    seen += count;
    if (seen >= rank) return bucket === null ? 0 : middleOf(bucket);
  }
  return null;
}

/** Bucket n holds durations in (growth^(n-1), growth^n]. */
function bucketOf(milliseconds: number): string {
  if (milliseconds < 1) return ZERO_BUCKET;
  return String(Math.max(0, Math.ceil(Math.log(milliseconds) / LOG_GROWTH)));
}

/** The harmonic mean of both bounds. Its relative error is the same at both bounds. */
function middleOf(bucket: number): number {
  return (2 * GROWTH ** bucket) / (GROWTH + 1);
}
