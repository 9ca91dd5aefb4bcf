import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, Nullable, OneOf } from '../events/schema-parts.ts';
import {
  backoffStrategies,
  misfirePolicies,
  overlapPolicies,
  scheduleKinds,
} from '../vocabulary.ts';

/** Largest payload of a task, in bytes of JSON. */
export const MAX_PAYLOAD_BYTES = 256 * 1024;

/** Largest `params_schema` of a task, in bytes of JSON. */
export const MAX_PARAMS_SCHEMA_BYTES = 64 * 1024;

const key = Nullable(Type.String({ minLength: 1, maxLength: 200 }));
const instant = Nullable(Type.String({ maxLength: 64 }));

/** The fields of a task, with the bounds that the API and the log enforce. */
export const taskFields = {
  title: Type.String({ minLength: 1, maxLength: 200 }),
  description: Type.String({ minLength: 1, maxLength: 2000 }),
  schedule_kind: OneOf(scheduleKinds),
  schedule_expr: Nullable(Type.String({ minLength: 1, maxLength: 4000 })),
  /** An IANA name, or `UTC`. */
  timezone: Type.String({ minLength: 1, maxLength: 100 }),
  payload: AnyObject,
  /** JSON Schema of a run's params; null: any object. Tasks of older releases lack it. */
  params_schema: Type.Optional(Nullable(AnyObject)),
  created_by: Type.String(),
  /** 1 is the most urgent. */
  priority: Type.Integer({ minimum: 1, maximum: 9 }),
  max_retries: Type.Integer({ minimum: 0, maximum: 50 }),
  backoff_strategy: OneOf(backoffStrategies),
  dedupe_key: key,
  dedupe_window_seconds: Nullable(Type.Integer({ minimum: 0, maximum: 31_536_000 })),
  concurrency_key: key,
  concurrency_limit: Type.Integer({ minimum: 1, maximum: 10_000 }),
  overlap_policy: OneOf(overlapPolicies),
  misfire_policy: OneOf(misfirePolicies),
  /** A fire that is at most this late still runs. A fire that is less than a second late always runs. */
  misfire_grace_seconds: Type.Integer({ minimum: 0, maximum: 31_536_000 }),
  /** The delay d of the backoff formulas. */
  retry_delay_seconds: Type.Number({ minimum: 0, maximum: 86_400 }),
  retry_max_delay_seconds: Type.Number({ minimum: 0, maximum: 604_800 }),
  /** The limit from the first start, backoff included. */
  timeout_seconds: Nullable(Type.Number({ exclusiveMinimum: 0, maximum: 31_536_000 })),
  starts_at: instant,
  ends_at: instant,
  /** Counts scheduled fires that were decided to run, even if the run is then skipped (duplicate, overlap). */
  max_runs: Nullable(Type.Integer({ minimum: 1 })),
  jitter_seconds: Type.Integer({ minimum: 0, maximum: 86_400 }),
  pause_after_failures: Nullable(Type.Integer({ minimum: 1, maximum: 1000 })),
  tags: Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 50 }),
};

export const TaskDefinitionSchema = Type.Object(taskFields, { additionalProperties: false });

/** A task's definition with every default filled in. */
export type TaskDefinition = Readonly<Static<typeof TaskDefinitionSchema>>;

/** The value of each optional field that a client leaves out: the one source of task defaults. */
export const taskDefaults = {
  params_schema: null,
  schedule_expr: null,
  timezone: 'UTC',
  priority: 5,
  max_retries: 3,
  backoff_strategy: 'exponential_jitter',
  dedupe_key: null,
  dedupe_window_seconds: null,
  concurrency_key: null,
  concurrency_limit: 1,
  overlap_policy: 'allow',
  misfire_policy: 'latest',
  misfire_grace_seconds: 60,
  retry_delay_seconds: 1,
  retry_max_delay_seconds: 300,
  timeout_seconds: null,
  starts_at: null,
  ends_at: null,
  max_runs: null,
  jitter_seconds: 0,
  pause_after_failures: null,
  tags: [] as string[],
} as const;

/** A task as a client defines it. All fields with a default may be left out. */
export type GivenDefinition = Partial<TaskDefinition> &
  Pick<TaskDefinition, 'title' | 'description' | 'schedule_kind' | 'payload' | 'created_by'>;

/**
 * Fills in the defaults. Written without a spread, because a spread of so many fields creates an object that is slow in
 * all later uses.
 */
export function withDefaults(given: GivenDefinition): TaskDefinition {
  return {
    title: given.title,
    description: given.description,
    schedule_kind: given.schedule_kind,
    schedule_expr: given.schedule_expr ?? taskDefaults.schedule_expr,
    timezone: given.timezone ?? taskDefaults.timezone,
    payload: given.payload,
    params_schema: given.params_schema ?? taskDefaults.params_schema,
    created_by: given.created_by,
    priority: given.priority ?? taskDefaults.priority,
    max_retries: given.max_retries ?? taskDefaults.max_retries,
    backoff_strategy: given.backoff_strategy ?? taskDefaults.backoff_strategy,
    dedupe_key: given.dedupe_key ?? taskDefaults.dedupe_key,
    dedupe_window_seconds: given.dedupe_window_seconds ?? taskDefaults.dedupe_window_seconds,
    concurrency_key: given.concurrency_key ?? taskDefaults.concurrency_key,
    concurrency_limit: given.concurrency_limit ?? taskDefaults.concurrency_limit,
    overlap_policy: given.overlap_policy ?? taskDefaults.overlap_policy,
    misfire_policy: given.misfire_policy ?? taskDefaults.misfire_policy,
    misfire_grace_seconds: given.misfire_grace_seconds ?? taskDefaults.misfire_grace_seconds,
    retry_delay_seconds: given.retry_delay_seconds ?? taskDefaults.retry_delay_seconds,
    retry_max_delay_seconds: given.retry_max_delay_seconds ?? taskDefaults.retry_max_delay_seconds,
    timeout_seconds: given.timeout_seconds ?? taskDefaults.timeout_seconds,
    starts_at: given.starts_at ?? taskDefaults.starts_at,
    ends_at: given.ends_at ?? taskDefaults.ends_at,
    max_runs: given.max_runs ?? taskDefaults.max_runs,
    jitter_seconds: given.jitter_seconds ?? taskDefaults.jitter_seconds,
    pause_after_failures: given.pause_after_failures ?? taskDefaults.pause_after_failures,
    tags: given.tags ?? taskDefaults.tags,
  };
}
