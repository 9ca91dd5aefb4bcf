import { Type } from '@sinclair/typebox';
import { TaskDefinitionSchema, taskFields } from '../tasks/task-definition.ts';
import { misfirePolicies, pauseCauses, spanSkipReasons } from '../vocabulary.ts';
import { event, Id, Namespace, Nullable, OneOf, Timestamp } from './schema-parts.ts';

/** The schedule that results when a rule is set. */
const schedule = {
  /** The instant that a rule without DTSTART counts from, cut to the second. */
  anchor: Timestamp,
  /** Nominal time of the next fire; null for none, and for event tasks. */
  next_fire_at: Nullable(Timestamp),
};

/** Events of `task-<id>`: the changes that people made to a task. */
export const taskEvents = {
  TaskCreated: event({ definition: TaskDefinitionSchema, ...schedule, namespace: Namespace }, 3),
  TaskUpdated: event(
    {
      changes: Type.Partial(Type.Object(taskFields, { additionalProperties: false })),
      /** Whether the schedule changed. If not, `next_fire_at` is the old value and has no effect. */
      rescheduled: Type.Boolean(),
      ...schedule,
    },
    2,
  ),
  /** `cause`: the service paused it, because its agent may no longer have tasks. */
  TaskPaused: event({ by_failures: Type.Boolean(), cause: Type.Optional(OneOf(pauseCauses)) }, 2),
  TaskResumed: event({ missed: OneOf(misfirePolicies), next_fire_at: Nullable(Timestamp) }),
  TaskSnoozed: event({
    delay_seconds: Type.Integer({ minimum: 1 }),
    /** The nominal time of the snoozed fire, which does not change. */
    next_fire_at: Timestamp,
    /** The time at which the snoozed fire runs. */
    next_run_at: Timestamp,
  }),
  TaskCanceled: event({}),
} as const;

/** Events of `fires-<task>`: the nominal time up to which all fires are decided, and the next fire. */
export const firesEvents = {
  /** Decided up to `nominal`, which runs as `run_id`. */
  Fired: event({
    nominal: Timestamp,
    run_id: Id,
    next_fire_at: Nullable(Timestamp),
    task_revision: Type.Integer({ minimum: 0 }),
    /** Fires of the task that were requested, this one included. */
    fire_count: Type.Integer({ minimum: 1 }),
  }),
  /** Decided up to `to`. None of these fires runs. */
  FiresSkipped: event({
    reason: OneOf(spanSkipReasons),
    from: Timestamp,
    to: Timestamp,
    count: Type.Integer({ minimum: 1 }),
    next_fire_at: Nullable(Timestamp),
    task_revision: Type.Integer({ minimum: 0 }),
    fire_count: Type.Integer({ minimum: 0 }),
  }),
  /** The next fire moved without a decision, for example by another tz database. */
  NextFireCorrected: event({
    next_fire_at: Nullable(Timestamp),
    tz_version: Type.String(),
    task_revision: Type.Integer({ minimum: 0 }),
    fire_count: Type.Integer({ minimum: 0 }),
  }),
} as const;
