import { toIso } from '../../domain/clock.ts';
import type { Reach } from '../reach.ts';
import type { ReadModel } from '../read-model.ts';
import {
  daysOfTask,
  statisticsProjection,
  tasksFailingSince,
  tasksSince,
} from '../views/statistics.ts';
import type { DayDocument } from '../views/statistics-days.ts';
import { type LastDayDocument, type RecentDay } from '../views/statistics-tasks.ts';
import { firstUtcDayOf } from './statistics-figures.ts';
import type { Period } from './statistics-periods.ts';
import { Sum, sumsOf, type Figures } from './statistics-sums.ts';

/** By what tasks are ranked. */
export const rankOrders = ['failing', 'failed', 'runs', 'time', 'skipped'] as const;
export type RankOrder = (typeof rankOrders)[number];

/** Documents that are read at a time, and tasks whose days are. */
const PAGE = 1000;
const CHUNK = 25;

/** Tasks whose days are read at most, and failing tasks that are looked at. */
const MAX_READ = 500;
const MAX_FAILING = 1000;

/** A task in a ranking. */
export interface RankedTask extends Figures {
  readonly task_id: string;
  /** Its latest run failed. */
  readonly failing: boolean;
  readonly last_success: string | null;
  readonly last_failure: string | null;
}

export interface TaskRanking {
  /** Tasks that there are to rank. */
  readonly total: number;
  readonly tasks: readonly RankedTask[];
}

interface Candidate {
  readonly id: string;
  readonly document: LastDayDocument;
  /** No measure of the period is larger. */
  readonly most: number;
}

/**
 * The tasks of a period with the largest figures, largest first; of `failing`, the latest failure first. The documents
 * of tasks have figures by UTC day, which contain the period: those with the largest ones are looked at more closely,
 * until no other can be among the first.
 *
 * @param options.isLive whether a failing task still counts: a canceled one does not
 */
export async function rankTasks(options: {
  readonly readModel: ReadModel;
  readonly reach: Reach;
  readonly period: Period;
  readonly order: RankOrder;
  readonly limit: number;
  readonly isLive: (taskId: string) => Promise<boolean>;
}): Promise<TaskRanking> {
  const { readModel, period, order, limit } = options;
  if (order === 'failing') return failingTasks(options);
  const candidates = await candidatesOf(options);
  const ranked: { readonly measure: number; readonly task: RankedTask }[] = [];
  for (let from = 0; from < Math.min(candidates.length, MAX_READ); from += CHUNK) {
    const last = ranked[limit - 1];
    if (last !== undefined && last.measure >= (candidates[from]?.most ?? 0)) break;
    for (const { candidate, sum } of await sumsFor(
      readModel,
      candidates.slice(from, from + CHUNK),
      period,
    )) {
      const measure = measureOf(order, [sum.total, sum.failed, sum.ms, sum.skipped]);
      if (measure > 0) ranked.push({ measure, task: rankedTask(candidate, sum) });
    }
    ranked.sort((one, other) => other.measure - one.measure);
  }
  return { total: candidates.length, tasks: ranked.slice(0, limit).map(({ task }) => task) };
}

async function failingTasks({
  readModel,
  reach,
  period,
  limit,
  isLive,
}: Parameters<typeof rankTasks>[0]): Promise<TaskRanking> {
  const found = await readModel.find(statisticsProjection, {
    filters: tasksFailingSince(reach, toIso(period.start)),
    sort: [{ field: 'failing', direction: 'descending' }],
    limit: MAX_FAILING,
  });
  const all = found.map(({ key, document }) => candidateOf(key, document as LastDayDocument, 0));
  const live: Candidate[] = [];
  for (let from = 0; from < all.length; from += CHUNK) {
    const some = all.slice(from, from + CHUNK);
    const alive = await Promise.all(some.map(({ id }) => isLive(id)));
    live.push(...some.filter((_, n) => alive[n]));
  }
  const sums = await sumsFor(readModel, live.slice(0, limit), period);
  return {
    total: live.length,
    tasks: sums.map(({ candidate, sum }) => rankedTask(candidate, sum)),
  };
}

/** The tasks with anything to rank, largest first. */
async function candidatesOf({
  readModel,
  reach,
  period,
  order,
}: Parameters<typeof rankTasks>[0]): Promise<readonly Candidate[]> {
  const first = firstUtcDayOf(period);
  const field = order === 'skipped' ? 'skipped_day' : order === 'failed' ? 'failed_day' : 'day';
  const filters = tasksSince(reach, field, first);
  const candidates: Candidate[] = [];
  let after: { readonly values: readonly string[]; readonly key: string } | undefined;
  for (;;) {
    const page = await readModel.find(statisticsProjection, {
      ...{ filters, sort: [{ field, direction: 'ascending' }], limit: PAGE },
      ...(after === undefined ? {} : { after }),
    });
    for (const { key, document } of page) {
      const task = document as LastDayDocument;
      const most = upperBound(task, first, order);
      if (most > 0) candidates.push(candidateOf(key, task, most));
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = { values: [(last.document as LastDayDocument)[field] ?? ''], key: last.key };
  }
  return candidates.sort((one, other) => other.most - one.most);
}

const candidateOf = (key: string, document: LastDayDocument, most: number): Candidate => {
  return { id: key.slice(key.indexOf('/') + 1), document, most };
};

function upperBound({ recent = {} }: LastDayDocument, first: string, order: RankOrder): number {
  let most = 0;
  for (const day in recent) {
    const figures = recent[day];
    if (day >= first && figures !== undefined) most += measureOf(order, figures);
  }
  return most;
}

function measureOf(order: RankOrder, [total, failed, ms, skipped]: RecentDay): number {
  if (order === 'skipped') return skipped;
  if (order === 'failed') return failed;
  return order === 'time' ? ms : total;
}

async function sumsFor(
  readModel: ReadModel,
  candidates: readonly Candidate[],
  period: Period,
): Promise<readonly { readonly candidate: Candidate; readonly sum: Sum }[]> {
  const first = firstUtcDayOf(period);
  return Promise.all(
    candidates.map(async (candidate) => {
      const found = await readModel.find(statisticsProjection, daysOfTask(candidate.id, first));
      const days = found.map(({ document }) => document as DayDocument);
      const [sum = new Sum()] = sumsOf([{ ...period, date: '' }], days);
      return { candidate, sum };
    }),
  );
}

function rankedTask({ id, document }: Candidate, sum: Sum): RankedTask {
  const { failing, last_success = null, last_failure = null } = document;
  const figures = sum.figures();
  return { task_id: id, failing: failing !== undefined, last_success, last_failure, ...figures };
}
