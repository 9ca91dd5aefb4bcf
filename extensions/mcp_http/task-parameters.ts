import { Type, type TObject, type TSchema } from '@sinclair/typebox';

const text = (description: string, limits: object = {}): TSchema =>
  Type.String({ description, minLength: 1, ...limits });
const whole = (description: string, limits: object): TSchema =>
  Type.Integer({ description, ...limits });
const oneOf = (description: string, values: readonly string[], more: object = {}): TSchema =>
  Type.Unsafe<string>({ type: 'string', description, enum: values, ...more });
/** A nullable field with the default null. */
const nullable = (description: string, schema: TSchema): TSchema =>
  Type.Optional(Type.Union([schema, Type.Null()], { description, default: null }));
/** A field with a default. */
const filled = (schema: TSchema, value: unknown): TSchema =>
  Type.Optional({ ...schema, default: value });

const kinds = ['cron', 'rrule', 'once', 'event'];

const expression = nullable(
  'cron: five or six fields, such as `0 9 * * MON-FRI`. rrule: RFC 5545. once: ISO 8601. event: a topic pattern, or null for every topic',
  text('the expression'),
);
const zone = filled(text('IANA time zone of the schedule'), 'UTC');
const startsAt = nullable('no fire before this instant', text('an instant, ISO 8601'));
const endsAt = nullable('no fire after this instant', text('an instant, ISO 8601'));
const maxRuns = nullable('the schedule ends after this many fires', whole('fires', { minimum: 1 }));

const step = {
  type: 'object',
  description:
    'a step: `uses` names the tool, `with` holds its arguments. A group has `parallel` instead',
  properties: {
    id: { type: 'string', description: 'name of the step, unique in its pipeline' },
    uses: { type: 'string', description: 'the tool, by its name in pipelines: `http.request`' },
    with: { description: 'arguments of the tool; strings may hold `${…}`' },
    save_as: { type: 'string', description: 'another name for the result' },
    if: { description: 'the step runs only if this JMESPath expression holds' },
    timeout_seconds: { type: 'number', default: 30, description: 'maximum seconds of one attempt' },
    max_retries: { type: 'integer', default: 0, description: 'retries of the step' },
    on_error: {
      type: 'string',
      enum: ['fail', 'continue'],
      default: 'fail',
      description: 'what a failure of the step does to the run',
    },
    for_each: { description: 'an array, or an expression that yields one; one call for each item' },
    parallel: {
      type: 'array',
      items: { type: 'object' },
      description: 'steps that run at the same time, each with `uses`',
    },
  },
};

/**
 * Parameters of `create_task`: the fields of `POST /tasks`, described for a language model. The service also checks its
 * own limits.
 */
export const taskParameters: Readonly<Record<string, TSchema>> = {
  title: text('short name', { maxLength: 200 }),
  description: text('what the task is for', { maxLength: 2000 }),
  schedule_kind: oneOf('how it is scheduled; event: runs when an event is published', kinds),
  schedule_expr: expression,
  payload: Type.Unsafe<object>({
    type: 'object',
    description:
      'what a run does: `pipeline`, the steps in order, and `params`, which steps read as `${params.name}`. `${steps.<id>.<field>}` is the result of an earlier step',
    properties: {
      pipeline: { type: 'array', items: step, description: 'the steps, in order' },
      params: { type: 'object', default: {}, description: 'values that the steps read' },
    },
    required: ['pipeline'],
  }),
  params_schema: nullable(
    'JSON Schema, of type object, that checks the `params` of a run. `format` is not checked',
    Type.Unsafe<object>({ type: 'object' }),
  ),
  created_by: Type.Optional(text('id of the agent that owns the task. Default: you')),
  timezone: zone,
  priority: filled(whole('1 is the highest', { minimum: 1, maximum: 9 }), 5),
  max_retries: filled(whole('retries of a failed run', { minimum: 0, maximum: 50 }), 3),
  backoff_strategy: filled(
    oneOf('how the delay before a retry grows', ['exponential_jitter', 'linear', 'fixed']),
    'exponential_jitter',
  ),
  retry_delay_seconds: filled(
    Type.Number({ description: 'delay before the first retry, in seconds', minimum: 0 }),
    1,
  ),
  retry_max_delay_seconds: filled(
    Type.Number({ description: 'maximum delay before a retry, in seconds', minimum: 0 }),
    300,
  ),
  timeout_seconds: nullable(
    'maximum duration of a run in seconds, retries included; null: no limit',
    Type.Number({ exclusiveMinimum: 0 }),
  ),
  concurrency_key: nullable(
    'tasks of one owner with the same key share a limit of concurrent runs',
    text('the key', { maxLength: 200 }),
  ),
  concurrency_limit: filled(whole('maximum concurrent runs of the key', { minimum: 1 }), 1),
  overlap_policy: filled(
    oneOf('what happens to a new run while another run of the task is unfinished', [
      'allow',
      'skip',
      'queue',
      'cancel_running',
    ]),
    'allow',
  ),
  dedupe_key: nullable(
    'a run with a key that was used before is a duplicate and does not run',
    text('the key', { maxLength: 200 }),
  ),
  dedupe_window_seconds: nullable(
    'seconds for which a key counts as used; null: until its run ends',
    whole('seconds', { minimum: 0 }),
  ),
  misfire_policy: filled(oneOf('which late fires run', ['latest', 'skip', 'all']), 'latest'),
  misfire_grace_seconds: filled(
    whole('seconds after which a fire is too late', { minimum: 0 }),
    60,
  ),
  starts_at: startsAt,
  ends_at: endsAt,
  max_runs: maxRuns,
  jitter_seconds: filled(
    whole('spreads tasks that are due at the same time over this many seconds', { minimum: 0 }),
    0,
  ),
  tags: filled(Type.Array(text('a tag'), { description: 'labels for finding the task' }), []),
  pause_after_failures: nullable(
    'pauses the task after this many failed runs in a row',
    whole('failed runs', { minimum: 1 }),
  ),
};

/** Parameters of `update_task`. No defaults: a field that is left out keeps its value. */
export const changeParameters: Readonly<Record<string, TSchema>> = Object.fromEntries(
  Object.entries(taskParameters).map(([name, { default: _none, ...schema }]) => [
    name,
    Type.Optional(schema as TSchema),
  ]),
);

/** Fields of a schedule, without defaults, which would conflict with `task_id`. */
const given = (name: string): TSchema => changeParameters[name] ?? Type.Unknown();

/** Parameters of `preview_schedule`: a schedule, or the id of a task. */
export const previewParameters: TObject = Type.Object(
  {
    task_id: Type.Optional(text('id of a task, instead of the fields of a schedule')),
    schedule_kind: given('schedule_kind'),
    schedule_expr: given('schedule_expr'),
    timezone: given('timezone'),
    starts_at: given('starts_at'),
    ends_at: given('ends_at'),
    max_runs: given('max_runs'),
    from: Type.Optional(text('only fires after this instant. Default: now')),
    count: filled(whole('number of fires', { minimum: 1, maximum: 1000 }), 10),
  },
  { additionalProperties: false },
);
