import { Type } from '@sinclair/typebox';
import { TaskDefinitionSchema, taskFields } from '../tasks/task-definition.ts';
import { misfirePolicies, spanSkipReasons } from '../vocabulary.ts';
import { Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';

/** Where a rule is anchored, and the next nominal time that follows from it. */
const rhythm = {
  /** The moment that a rule without DTSTART counts from, cut to the second. */
  anchor: Timestamp,
  /** Nominal time of the next fire; null where there is none ahead, and for event tasks. */
  next_fire_at: Nullable(Timestamp),
};

/** Events of `task-<id>`: what people did to it. */
export const taskEvents = {
  TaskCreated: { version: 1, schema: closed({ definition: TaskDefinitionSchema, ...rhythm }) },
  TaskUpdated: {
    version: 1,
    schema: closed({
      changes: Type.Partial(Type.Object(taskFields, { additionalProperties: false })),
      /** Whether the rhythm is set anew; if not, `next_fire_at` is as it stood and decides nothing. */
      rescheduled: Type.Boolean(),
      ...rhythm,
    }),
  },
  TaskPaused: { version: 1, schema: closed({ by_failures: Type.Boolean() }) },
  TaskResumed: {
    version: 1,
    schema: closed({ missed: OneOf(misfirePolicies), next_fire_at: Nullable(Timestamp) }),
  },
  TaskSnoozed: {
    version: 1,
    schema: closed({
      delay_seconds: Type.Integer({ minimum: 1 }),
      /** The fire that is put off keeps its nominal time … */
      next_fire_at: Timestamp,
      /** … and runs then. */
      next_run_at: Timestamp,
    }),
  },
  TaskCanceled: { version: 1, schema: closed({}) },
} as const;

/** Events of `fires-<task>`: the rhythm, and up to which nominal time all is decided. */
export const firesEvents = {
  /** Decided up to `nominal`: it runs, as `run_id`. */
  Fired: {
    version: 1,
    schema: closed({
      nominal: Timestamp,
      run_id: Id,
      next_fire_at: Nullable(Timestamp),
      task_revision: Type.Integer({ minimum: 0 }),
      /** How many fires of this schedule were requested, this one included. */
      fire_count: Type.Integer({ minimum: 1 }),
    }),
  },
  /** Decided up to `to`: none of these runs. */
  FiresSkipped: {
    version: 1,
    schema: closed({
      reason: OneOf(spanSkipReasons),
      from: Timestamp,
      to: Timestamp,
      count: Type.Integer({ minimum: 1 }),
      next_fire_at: Nullable(Timestamp),
      task_revision: Type.Integer({ minimum: 0 }),
      fire_count: Type.Integer({ minimum: 0 }),
    }),
  },
  /** The next fire moved without anyone deciding it: another tz database, say. */
  NextFireCorrected: {
    version: 1,
    schema: closed({
      next_fire_at: Nullable(Timestamp),
      tz_version: Type.String(),
      task_revision: Type.Integer({ minimum: 0 }),
      fire_count: Type.Integer({ minimum: 0 }),
    }),
  },
} as const;
