import { toIso, type Instant } from '../../../domain/clock.ts';
import type { Position } from '../../../domain/event-store.ts';
import { unknownZoneMessage } from '../../../domain/schedule/zone-names.ts';
import type { Zone } from '../../../domain/schedule/zone.ts';
import { errorFigures, startsOf } from '../../../projections/reading/error-figures.ts';
import {
  firstUtcDayOf,
  statisticsSummary,
  taskStatistics,
  type Division,
} from '../../../projections/reading/statistics-figures.ts';
import {
  hoursOf,
  lastDays,
  lastHours,
  zoneNamed,
  type Period,
} from '../../../projections/reading/statistics-periods.ts';
import { rankTasks } from '../../../projections/reading/task-ranking.ts';
import type { Filter, Query } from '../../../projections/read-model.ts';
import type { DayDocument } from '../../../projections/views/statistics-days.ts';
import type { ErrorDayDocument } from '../../../projections/views/statistics-errors.ts';
import {
  daysOfAll,
  daysOfErrors,
  daysOfTask,
  statisticsProjection,
  tasksExecutedSince,
} from '../../../projections/views/statistics.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import {
  DaysQuery,
  ErrorStatistics,
  ErrorsQuery,
  MAX_FINE_DAYS,
  RankingQuery,
  StatisticsSummary,
  TaskRanking,
  TaskStatistics,
} from '../../schemas/statistics-schemas.ts';
import { placeOfReading, viewRefusals } from '../history/replay-reading.ts';
import { taskInPath } from '../lookup.ts';

const scopes = ['runs:read'] as const;

/** How many days of errors one request reads at most, starting with the latest. */
const MAX_ERROR_DAYS = 5000;

const ofTask = endpoint('GET /task/:task_id/stats', {
  aliases: ['/runs/task/:task_id/stats'],
  operationId: 'getTaskStatistics',
  summary: "Shows statistics of a task's runs",
  scopes,
  acceptsOwn: true,
  query: DaysQuery(30),
  reads: [statisticsProjection],
  responses: { 200: TaskStatistics },
  refusals: viewRefusals,
  async handle(call) {
    const { dependencies, now } = await placeOfReading(call);
    const division = divisionOf(call.query, now);
    const taskId = await taskInPath(call);
    const asked = daysOfTask(taskId, firstUtcDayOf(division.period));
    const { days, position } = await daysOf(dependencies, asked, null);
    return { body: taskStatistics(taskId, division, days), readPosition: position };
  },
});

const summary = endpoint('GET /stats/summary', {
  aliases: ['/runs/stats/summary'],
  operationId: 'getStatistics',
  summary: 'Shows statistics of all runs',
  scopes,
  query: DaysQuery(7),
  reads: [statisticsProjection],
  responses: { 200: StatisticsSummary },
  refusals: viewRefusals,
  async handle(call) {
    const { dependencies, now } = await placeOfReading(call);
    const division = divisionOf(call.query, now);
    const firstDay = firstUtcDayOf(division.period);
    const tasksOf = tasksExecutedSince(call.reach, firstDay);
    const asked = daysOfAll(call.reach, firstDay);
    const { days, tasks, position } = await daysOf(dependencies, asked, tasksOf);
    return { body: statisticsSummary(division, days, tasks), readPosition: position };
  },
});

const errors = endpoint('GET /stats/errors', {
  operationId: 'getErrorStatistics',
  summary: 'Shows failed runs by error, the latest first',
  scopes,
  query: ErrorsQuery,
  reads: [statisticsProjection],
  responses: { 200: ErrorStatistics },
  async handle({ dependencies, query, reach }) {
    const { readModel, clock } = dependencies;
    const period = periodOf(query, clock.now());
    const asked = daysOfErrors(reach, firstUtcDayOf(period), MAX_ERROR_DAYS);
    const { documents, position, hasMore } = await readModel.list(statisticsProjection, {
      ...asked,
      counted: null,
    });
    const days = documents.map(({ text }) => JSON.parse(text) as ErrorDayDocument);
    const buckets =
      query.interval === undefined ? [] : query.interval === 'hour' ? hoursOf(period) : period.days;
    const taskId = query.task_id?.toLowerCase() ?? null;
    const groups = errorFigures(days, period, buckets, taskId);
    const body: ErrorStatistics = {
      ...spanOf(period),
      total: groups.length,
      failed_runs: groups.reduce((sum, { count }) => sum + count, 0),
      bucket_starts: [...startsOf(buckets)],
      items: groups.slice(0, query.limit).map((group) => ({
        ...group,
        tasks: [...group.tasks],
        counts: [...group.counts],
      })),
      has_more: hasMore || groups.length > query.limit,
    };
    return { body, readPosition: position };
  },
});

const tasks = endpoint('GET /stats/tasks', {
  operationId: 'rankTasks',
  summary: 'Ranks tasks by failures, runs, time or skipped runs, with their statistics',
  scopes,
  query: RankingQuery,
  reads: [statisticsProjection, tasksProjection],
  responses: { 200: TaskRanking },
  async handle({ dependencies, query, reach }) {
    const { readModel, clock } = dependencies;
    const { sort, limit } = query;
    const period = periodOf(query, clock.now());
    const isLive = async (id: string): Promise<boolean> => {
      const task = await readModel.get(tasksProjection, id);
      return task !== null && task.document.status !== 'canceled';
    };
    const ranking = await rankTasks({ readModel, reach, period, order: sort, limit, isLive });
    const { total, tasks: items } = ranking;
    const body: TaskRanking = { ...spanOf(period), sort, total, items: [...items] };
    return { body };
  },
});

/** `/runs/stats/summary` must precede `/runs/:run_id`, which would match its path. */
export const statisticsEndpoints: readonly Endpoint[] = [summary, errors, tasks, ofTask];

/** @throws HttpError 400 for an unknown zone, or for too many days by hour */
function divisionOf({ interval, ...asked }: DaysQuery, now: Instant): Division {
  const { days, hours } = asked;
  const isHourly = interval === 'hour';
  if (isHourly && hours === undefined && days > MAX_FINE_DAYS) {
    const issue = `must be at most ${MAX_FINE_DAYS} with interval=hour, got ${days}`;
    throw badRequest([{ field: 'days', issue }]);
  }
  return { period: periodOf(asked, now), isHourly };
}

/** @throws HttpError 400 for an unknown zone */
function periodOf(
  { days, hours, timezone }: Pick<ErrorsQuery, 'days' | 'hours' | 'timezone'>,
  now: Instant,
): Period {
  const zone = zoneIn(timezone);
  return hours === undefined ? lastDays(zone, days, now) : lastHours(zone, hours, now);
}

function zoneIn(timezone: string): Zone {
  const zone = zoneNamed(timezone);
  if (zone === null) {
    throw badRequest([{ field: 'timezone', issue: unknownZoneMessage(timezone) }]);
  }
  return zone;
}

function spanOf({ zone, start, end }: Period): Pick<TaskRanking, 'timezone' | 'start' | 'end'> {
  return { timezone: zone.name, start: toIso(start), end: toIso(end) };
}

/** The days that a query finds and the number of tasks that pass filters, both from one snapshot. */
async function daysOf(
  { readModel }: Pick<ApiDependencies, 'readModel'>,
  query: Query,
  tasksOf: readonly Filter[] | null,
): Promise<{
  readonly days: readonly DayDocument[];
  readonly tasks: number;
  readonly position: Position;
}> {
  const { documents, total, position } = await readModel.list(statisticsProjection, {
    ...query,
    counted: tasksOf,
  });
  const days = documents.map(({ text }) => JSON.parse(text) as DayDocument);
  return { days, tasks: total ?? 0, position };
}
