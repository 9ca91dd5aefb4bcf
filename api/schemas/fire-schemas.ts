import { Type, type Static } from '@sinclair/typebox';
import { Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { runSkipReasons, runStates, spanSkipReasons } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { count, id, time } from './response-schemas.ts';

/** Requests for, and responses about, the decided fires of a task and the outcomes of its runs. */

const timestamp = Type.String({ minLength: 1, maxLength: 64 });

/** The longest span of decided fires. */
export const MAX_SPAN_DAYS = 366;

export const FiresQuery = Type.Object({
  from: timestamp,
  to: timestamp,
  limit: pageParameters.limit,
  cursor: pageParameters.cursor,
  after: pageParameters.after,
});
export type FiresQuery = Static<typeof FiresQuery>;

const FireRun = Type.Object(
  {
    id,
    state: OneOf(runStates),
    skip_reason: Nullable(OneOf(runSkipReasons)),
    error: Nullable(Type.String({ description: 'its first line, up to 120 characters' })),
    started_at: Nullable(time),
    finished_at: Nullable(time),
  },
  { title: 'FireRun', additionalProperties: false },
);

export const DecidedFire = Type.Object(
  {
    revision: count,
    reason: OneOf(['fired', ...spanSkipReasons] as const),
    from: time,
    to: time,
    count: Type.Integer({ minimum: 1 }),
    decided_at: time,
    task_revision: count,
    run_id: Nullable(id),
    run: Nullable(FireRun),
  },
  { title: 'DecidedFire', additionalProperties: false },
);
export type DecidedFire = Static<typeof DecidedFire>;

export const DecidedFires = Type.Object(
  {
    task_id: id,
    from: time,
    to: time,
    items: Type.Array(DecidedFire),
    next_cursor: Nullable(Type.String({ description: 'cursor of the next page; null at the end' })),
  },
  { title: 'DecidedFires', additionalProperties: false },
);
export type DecidedFires = Static<typeof DecidedFires>;

const date = Type.String({
  pattern: String.raw`^\d{4}-\d\d-\d\d$`,
  description: 'a date, such as `2026-11-26`',
});

export const calendarUnits = ['day', 'month'] as const;
export type CalendarUnit = (typeof calendarUnits)[number];

/** The most parts of a calendar by their unit. */
export const MAX_PARTS: Readonly<Record<CalendarUnit, number>> = { day: 62, month: 24 };

export const CalendarQuery = Type.Object({
  from: date,
  to: date,
  by: Type.Unsafe<CalendarUnit>({ type: 'string', enum: [...calendarUnits], default: 'day' }),
  timezone: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "default: the task's time zone" }),
  ),
  after: pageParameters.after,
});
export type CalendarQuery = Static<typeof CalendarQuery>;

const skipped = closed(Object.fromEntries(spanSkipReasons.map((reason) => [reason, count])));

export const Calendar = Type.Object(
  {
    task_id: id,
    timezone: Type.String(),
    by: OneOf(calendarUnits),
    parts: Type.Array(
      closed({
        date: Type.String(),
        from: time,
        to: time,
        fired: Nullable(count),
        skipped: Nullable(skipped),
        runs: closed({
          succeeded: count,
          failed: count,
          canceled: count,
          unfinished: count,
          skipped: count,
        }),
      }),
    ),
    gaps: Type.Array(
      closed({
        reason: OneOf(spanSkipReasons),
        from: time,
        to: time,
        count: Type.Integer({ minimum: 1 }),
      }),
    ),
  },
  { title: 'TaskCalendar', additionalProperties: false },
);
export type Calendar = Static<typeof Calendar>;

/** The most tasks whose outcomes are read at once. */
export const MAX_OUTCOME_TASKS = 200;
/** The runs of each task whose outcomes are shown. */
export const SHOWN_OUTCOMES = 20;

export const OutcomesQuery = Type.Object({
  ids: Type.String({
    minLength: 1,
    maxLength: 40 * MAX_OUTCOME_TASKS,
    description: `ids of up to ${MAX_OUTCOME_TASKS} tasks, separated by commas`,
  }),
  after: pageParameters.after,
  namespace: pageParameters.namespace,
});
export type OutcomesQuery = Static<typeof OutcomesQuery>;

export const Outcomes = Type.Object(
  {
    period_days: count,
    items: Type.Array(
      closed({
        task_id: id,
        runs: Type.Array(
          closed({
            id,
            state: OneOf(runStates),
            queued_at: time,
            duration_seconds: Nullable(Type.Number({ minimum: 0 })),
          }),
        ),
        p95_execution_time_seconds: Nullable(Type.Number({ minimum: 0 })),
        failing: Type.Boolean(),
        failed_in_period: Type.Boolean(),
      }),
    ),
  },
  { title: 'TaskOutcomes', additionalProperties: false },
);
export type Outcomes = Static<typeof Outcomes>;
