import { toIso } from '../../domain/clock.ts';
import type { Reach } from '../reach.ts';
import type { ReadModel } from '../read-model.ts';
import {
  daysOfTask,
  statisticsProjection,
  tasksFailingSince,
  tasksSince,
} from '../views/statistics.ts';
import { dayOf, type DayDocument } from '../views/statistics-days.ts';
import { recentSumIn, type LastDayDocument } from '../views/statistics-tasks.ts';
import { firstUtcDayOf } from './statistics-figures.ts';
import type { Period } from './statistics-periods.ts';
import { Sum, sumsOf, type Figures } from './statistics-sums.ts';

/** The measures by which tasks can be ranked. */
export const rankOrders = ['failing', 'failed', 'runs', 'time', 'skipped'] as const;
export type RankOrder = (typeof rankOrders)[number];

/** The figure by which each order ranks; `failing` ranks by the latest failure. */
const figureOf = { failed: 'failed', runs: 'total', time: 'ms', skipped: 'skipped' } as const;

/** How many documents are read at a time, and for how many tasks the days are read at a time. */
const PAGE = 2000;
const CHUNK = 25;

/** The most tasks whose days are read, and the most failing tasks that are checked. */
const MAX_READ = 500;
const MAX_FAILING = 1000;

/** A task in a ranking. */
export interface RankedTask extends Figures {
  readonly task_id: string;
  /** Whether its latest run failed. */
  readonly failing: boolean;
  readonly last_success: string | null;
  readonly last_failure: string | null;
}

export interface TaskRanking {
  /** The number of tasks that can be ranked. */
  readonly total: number;
  readonly tasks: readonly RankedTask[];
}

interface Candidate {
  readonly id: string;
  /** The task's document as JSON. */
  readonly text: string;
  /** An upper bound of its measure in the period. */
  readonly most: number;
}

/**
 * The tasks of a period with the largest figures, largest first; for `failing`, the latest failure first. The documents
 * of tasks have figures by UTC day, which give upper bounds. Starting with the largest bounds, exact figures are read
 * until no other task can be among the first.
 *
 * @param options.isLive whether a failing task still counts; a canceled one does not
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
  const figure = figureOf[order];
  const candidates = await candidatesOf(options, figure);
  const ranked: { readonly measure: number; readonly task: RankedTask }[] = [];
  for (let from = 0; from < Math.min(candidates.length, MAX_READ); from += CHUNK) {
    const last = ranked[limit - 1];
    if (last !== undefined && last.measure >= (candidates[from]?.most ?? 0)) break;
    for (const { candidate, sum } of await sumsFor(
      readModel,
      candidates.slice(from, from + CHUNK),
      period,
    )) {
      const measure = sum[figure];
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
  const { documents } = await readModel.list(statisticsProjection, {
    filters: tasksFailingSince(reach, toIso(period.start)),
    sort: [{ field: 'failing', direction: 'descending' }],
    limit: MAX_FAILING,
    counted: null,
  });
  const all = documents.map(({ key, text }) => candidateOf(key, text, 0));
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

/** The tasks that can be ranked, largest bound first. */
async function candidatesOf(
  { readModel, reach, period }: Parameters<typeof rankTasks>[0],
  figure: 'failed' | 'total' | 'ms' | 'skipped',
): Promise<readonly Candidate[]> {
  const first = firstUtcDayOf(period);
  const field = figure === 'skipped' ? 'skipped_day' : figure === 'failed' ? 'failed_day' : 'day';
  const filters = tasksSince(reach, field, first);
  const days = utcDaysOf(period);
  const candidates: Candidate[] = [];
  let after: { readonly values: readonly string[]; readonly key: string } | undefined;
  for (;;) {
    const { documents, hasMore } = await readModel.list(statisticsProjection, {
      filters,
      sort: [{ field, direction: 'ascending' }],
      limit: PAGE,
      counted: null,
      ...(after === undefined ? {} : { after }),
    });
    for (const { key, text } of documents) {
      const most = recentSumIn(text, days, figure);
      if (most > 0) candidates.push(candidateOf(key, text, most));
    }
    const last = documents.at(-1);
    if (last === undefined || !hasMore) break;
    after = { values: [documentIn(last.text)[field] ?? ''], key: last.key };
  }
  return candidates.sort((one, other) => other.most - one.most);
}

const candidateOf = (key: string, text: string, most: number): Candidate => {
  return { id: key.slice(key.indexOf('/') + 1), text, most };
};

const documentIn = (text: string): LastDayDocument => JSON.parse(text) as LastDayDocument;

/** The first and the last UTC day that a period touches. */
function utcDaysOf(period: Period): { readonly first: string; readonly last: string } {
  return { first: firstUtcDayOf(period), last: dayOf(toIso(period.end - 1)) };
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

function rankedTask({ id, text }: Candidate, sum: Sum): RankedTask {
  const { failing, last_success = null, last_failure = null } = documentIn(text);
  const figures = sum.figures();
  return { task_id: id, failing: failing !== undefined, last_success, last_failure, ...figures };
}
