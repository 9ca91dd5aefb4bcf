import { Type, type Static } from '@sinclair/typebox';
import { Nullable, OneOf, withDefault } from '../../domain/events/schema-parts.ts';
import { rankOrders } from '../../projections/reading/task-ranking.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { count, id, time } from './response-schemas.ts';
import { view } from './schemas.ts';

/** Queries and responses of the statistics. */

/** The most days that statistics by hour, by error and by task cover. */
export const MAX_FINE_DAYS = 31;

const timezone = withDefault(Type.String({ minLength: 1, maxLength: 64 }), 'UTC');
const hours = Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_FINE_DAYS * 24 }));
const interval = OneOf(['day', 'hour'] as const);
const uuid = Type.String({ format: 'uuid', description: 'a UUID' });
const reading = { after: pageParameters.after, namespace: pageParameters.namespace };

/** @param otherwise default of `days` */
export const DaysQuery = (otherwise: number) =>
  Type.Object({
    days: Type.Integer({ minimum: 1, maximum: 365, default: otherwise }),
    hours,
    timezone,
    interval: withDefault(interval, 'day'),
    ...reading,
    view,
  });
export type DaysQuery = Static<ReturnType<typeof DaysQuery>>;

/** A period by its days, or by its hours. */
const period = {
  days: Type.Integer({ minimum: 1, maximum: MAX_FINE_DAYS, default: 1 }),
  hours,
  timezone,
};

export const ErrorsQuery = Type.Object({
  ...period,
  interval: Type.Optional(interval),
  task_id: Type.Optional(uuid),
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  ...reading,
});
export type ErrorsQuery = Static<typeof ErrorsQuery>;

export const RankingQuery = Type.Object({
  ...period,
  sort: withDefault(OneOf(rankOrders), 'failed'),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
  ...reading,
});
export type RankingQuery = Static<typeof RankingQuery>;

const rate = Nullable(
  Type.Number({ minimum: 0, maximum: 1, description: '0 to 1; null if no run ended' }),
);
const seconds = Nullable(Type.Number({ minimum: 0 }));

const figures = {
  total_runs: count,
  successful_runs: count,
  failed_runs: count,
  skipped_runs: count,
  success_rate: rate,
  failure_rate: rate,
  avg_execution_time_seconds: seconds,
  p50_execution_time_seconds: seconds,
  p95_execution_time_seconds: seconds,
};

const Day = Type.Object(
  { date: Type.String({ format: 'date' }), start: time, ...figures },
  { title: 'StatisticsDay', additionalProperties: false },
);

const Hour = Type.Object(
  { start: time, ...figures },
  { title: 'StatisticsHour', additionalProperties: false },
);

const whole = { period_days: Type.Integer({ minimum: 1, maximum: 365 }), ...figures };
const zone = { timezone: Type.String() };
const divided = { ...zone, by_day: Type.Array(Day), by_hour: Type.Optional(Type.Array(Hour)) };

export const TaskStatistics = Type.Object(
  {
    task_id: id,
    ...whole,
    last_run: Nullable(time),
    last_success: Nullable(time),
    last_failure: Nullable(time),
    ...divided,
  },
  { title: 'TaskStatistics', additionalProperties: false },
);
export type TaskStatistics = Static<typeof TaskStatistics>;

export const StatisticsSummary = Type.Object(
  {
    ...whole,
    total_tasks_executed: count,
    runs_per_day: Type.Number({ minimum: 0 }),
    ...divided,
  },
  { title: 'StatisticsSummary', additionalProperties: false },
);
export type StatisticsSummary = Static<typeof StatisticsSummary>;

const span = { ...zone, start: time, end: time };

const ErrorGroup = Type.Object(
  {
    id: Type.String(),
    error: Type.String(),
    example: Type.String(),
    count,
    first: time,
    last: time,
    last_run_id: Nullable(id),
    tasks: Type.Array(
      Type.Object({ task_id: id, count }, { title: 'ErrorGroupTask', additionalProperties: false }),
    ),
    task_count: count,
    has_more_tasks: Type.Boolean(),
    counts: Type.Array(count),
  },
  { title: 'ErrorGroup', additionalProperties: false },
);

export const ErrorStatistics = Type.Object(
  {
    ...span,
    total: count,
    failed_runs: count,
    bucket_starts: Type.Array(time),
    items: Type.Array(ErrorGroup),
    has_more: Type.Boolean(),
  },
  { title: 'ErrorStatistics', additionalProperties: false },
);
export type ErrorStatistics = Static<typeof ErrorStatistics>;

const RankedTask = Type.Object(
  {
    task_id: id,
    failing: Type.Boolean(),
    last_success: Nullable(time),
    last_failure: Nullable(time),
    ...figures,
  },
  { title: 'RankedTask', additionalProperties: false },
);

export const TaskRanking = Type.Object(
  { ...span, sort: OneOf(rankOrders), total: count, items: Type.Array(RankedTask) },
  { title: 'TaskRanking', additionalProperties: false },
);
export type TaskRanking = Static<typeof TaskRanking>;
