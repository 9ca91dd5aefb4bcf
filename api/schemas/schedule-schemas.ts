import { Type, type Static } from '@sinclair/typebox';
import { DEFAULT_CONCURRENCY, MAX_CONCURRENCY } from '../../domain/backfills/backfill.ts';
import { OneOf, closed, withDefault } from '../../domain/events/schema-parts.ts';
import { taskFields } from '../../domain/tasks/task-definition.ts';
import { backfillScopes } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { givenParams, uuid } from './schemas.ts';

/** Requests about schedules: previews, explanations, backfills, keys. */

const { schedule_kind, schedule_expr, timezone, starts_at, ends_at, max_runs } = taskFields;

/** The fields of a task that determine its schedule. */
export const scheduleFields = {
  schedule_kind,
  schedule_expr,
  timezone,
  starts_at,
  ends_at,
  max_runs,
};

export const PreviewSchedule = Type.Partial(
  closed({
    ...scheduleFields,
    task_id: uuid,
    from: Type.String({ maxLength: 64 }),
    count: Type.Integer({ minimum: 1, maximum: 1000, default: 10 }),
  }),
);
export type PreviewSchedule = Static<typeof PreviewSchedule>;

export const ExplainQuery = Type.Object({
  at: Type.String({ minLength: 1, maxLength: 64 }),
  after: pageParameters.after,
});
export type ExplainQuery = Static<typeof ExplainQuery>;

const timestamp = Type.String({ minLength: 1, maxLength: 64 });

/** The body of `POST /tasks/{id}/backfill`. */
export const RequestBackfill = Type.Composite(
  [
    closed({ from: timestamp, to: timestamp }),
    Type.Partial(
      closed({
        dry_run: Type.Boolean({ default: false }),
        only: withDefault(OneOf(backfillScopes), 'missing'),
        concurrency: Type.Integer({
          minimum: 1,
          maximum: MAX_CONCURRENCY,
          default: DEFAULT_CONCURRENCY,
        }),
        params: givenParams,
      }),
    ),
  ],
  { additionalProperties: false },
);
export type RequestBackfill = Static<typeof RequestBackfill>;

export const BackfillQuery = Type.Object(pageParameters);
export type BackfillQuery = Static<typeof BackfillQuery>;

export const ConcurrencyQuery = Type.Object({
  created_by: Type.Optional(uuid),
  after: pageParameters.after,
});
export type ConcurrencyQuery = Static<typeof ConcurrencyQuery>;
