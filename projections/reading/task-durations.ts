import { toIso, type Instant } from '../../domain/clock.ts';
import type { JsonObject } from '../../domain/json.ts';
import { within, type Reach } from '../reach.ts';
import type { ReadModel } from '../read-model.ts';
import { mergeHistograms, percentileOf, type Histogram } from '../views/histogram.ts';
import { statisticsProjection } from '../views/statistics.ts';

const DAY_MS = 86_400_000;

/** What is read of a task's day. */
type Day = JsonObject & { readonly scope: string; readonly histogram: Histogram };

/** Bytes up to which a day is read whole. */
const MAX_DAY_BYTES = 2048;

/**
 * The 95th percentiles of how long runs of tasks took, in seconds, by task. Tasks without runs are missing.
 * @param periodDays days of UTC, today included
 */
export async function p95OfTasks(
  readModel: ReadModel,
  reach: Reach,
  taskIds: readonly string[],
  periodDays: number,
  now: Instant,
): Promise<ReadonlyMap<string, number>> {
  const firstDay = toIso(now - (periodDays - 1) * DAY_MS).slice(0, 10);
  const { documents } = await readModel.list(statisticsProjection, {
    filters: [
      ...within(reach),
      { field: 'scope', op: 'in', value: taskIds },
      { field: 'day', op: 'gte', value: firstDay },
    ],
    sort: [
      { field: 'scope', direction: 'ascending' },
      { field: 'day', direction: 'ascending' },
    ],
    // A clock that is ahead may have begun the next day.
    limit: taskIds.length * (periodDays + 1),
    counted: null,
    isLoose: true,
    cut: { maxBytes: MAX_DAY_BYTES, values: [], omitted: ['quarters'] },
  });
  const byTask = new Map<string, Histogram[]>();
  for (const { text } of documents) {
    const { scope, histogram } = JSON.parse(text) as Day;
    const known = byTask.get(scope);
    if (known === undefined) byTask.set(scope, [histogram]);
    else known.push(histogram);
  }
  const found = new Map<string, number>();
  for (const [task, histograms] of byTask) {
    const milliseconds = percentileOf(mergeHistograms(histograms), 0.95);
    if (milliseconds !== null) found.set(task, Math.round(milliseconds * 1000) / 1e6);
  }
  return found;
}
