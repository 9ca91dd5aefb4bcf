import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { explainReasons } from '../../domain/explain/explanation.ts';
import { backfillScopes, backfillStates, backfillStops } from '../../domain/vocabulary.ts';
import { count, done, id, pageOf, time, namespace } from './response-schemas.ts';

/** Responses about schedules: previews, explanations, backfills, concurrency keys. */

/** A schedule in words. */
export const scheduleText = Type.String({
  description: 'the schedule in words; an expression that cannot be described is quoted',
});

export const SchedulePreview = Type.Object(
  {
    schedule_text: scheduleText,
    fires: Type.Array(
      closed({
        at: time,
        local: Type.String({ description: "wall time of the rule's zone, with its offset" }),
        note: Nullable(
          Type.String({
            description: 'what a clock change did to it, or to a time since the previous fire',
          }),
        ),
      }),
    ),
    warnings: Type.Array(Type.String()),
  },
  { title: 'SchedulePreview', additionalProperties: false },
);
export type SchedulePreview = Static<typeof SchedulePreview>;

export const Explanation = Type.Object(
  {
    task_id: id,
    at: time,
    fired: Type.Boolean(),
    reason: Nullable(OneOf(explainReasons)),
    message: Type.String(),
    run_id: Nullable(id),
    previous_fire: Nullable(time),
    next_fire: Nullable(time),
    evidence: Type.Array(
      closed({
        stream: Type.String(),
        revision: count,
        position: Type.String(),
        event_id: id,
        type: Type.String(),
        at: time,
        actor: Type.String(),
        reason: Nullable(Type.String()),
      }),
    ),
  },
  { title: 'Explanation', additionalProperties: false },
);
export type Explanation = Static<typeof Explanation>;

const asked = {
  task_id: id,
  from: time,
  to: time,
  only: OneOf(backfillScopes),
  concurrency: Type.Integer({ minimum: 1 }),
  total: count,
  params: Type.Union([AnyObject, Type.Null()], {
    description: 'overrides default params of the task in each run; null: none',
  }),
};

export const Backfill = Type.Object(
  {
    id,
    namespace,
    ...asked,
    task_revision: count,
    created_by: id,
    requested_by: Type.String(),
    state: OneOf(backfillStates),
    canceled_by: Nullable(OneOf(backfillStops)),
    requested: count,
    existing: count,
    unfinished: count,
    succeeded: count,
    failed: count,
    canceled: count,
    skipped: count,
    up_to: Nullable(time),
    created_at: time,
    updated_at: time,
    finished_at: Nullable(time),
  },
  { title: 'Backfill', additionalProperties: false },
);
export type Backfill = Static<typeof Backfill>;

export const BackfillPage = pageOf('BackfillPage', Backfill);
export type BackfillPage = Static<typeof BackfillPage>;

/** A dry run of a backfill. */
export const BackfillPlanned = done({
  ...asked,
  existing: count,
  to_request: count,
  first: Type.Array(time),
});
export type BackfillPlanned = Static<typeof BackfillPlanned>;

export const BackfillRequested = done({
  ...asked,
  backfill_id: id,
  task_revision: count,
  requested: count,
  state: Type.Literal('running'),
});
export type BackfillRequested = Static<typeof BackfillRequested>;

export const BackfillCanceled = done({
  backfill_id: id,
  task_id: id,
  old_state: OneOf(['running', 'canceled'] as const),
  new_state: Type.Literal('canceled'),
  requested: count,
  total: count,
});
export type BackfillCanceled = Static<typeof BackfillCanceled>;

const holder = { run_id: id, task_id: id, since: time };

export const ConcurrencyKey = Type.Object(
  {
    key: Type.String(),
    limit: Nullable(Type.Integer({ minimum: 1 })),
    holders: Type.Array(closed(holder)),
    waiters: Type.Array(closed({ ...holder, priority: Type.Integer() })),
    more_waiters: Nullable(count),
  },
  { title: 'ConcurrencyKey', additionalProperties: false },
);
export type ConcurrencyKey = Static<typeof ConcurrencyKey>;
