import { Type, type TObject, type TSchema } from '@sinclair/typebox';

const text = (description: string, limits: object = {}): TSchema =>
  Type.String({ description, minLength: 1, ...limits });
const whole = (description: string, minimum: number, maximum?: number): TSchema =>
  Type.Integer({ description, minimum, ...(maximum === undefined ? {} : { maximum }) });
const oneOf = (description: string, values: readonly string[]): TSchema =>
  Type.Unsafe<string>({ type: 'string', description, enum: values });
const nullable = (schema: TSchema): TSchema => Type.Union([schema, Type.Null()]);

const kinds = ['cron', 'rrule', 'once', 'event'];

const expression = text(
  'cron: five or six fields, such as `0 9 * * MON-FRI`. rrule: RFC 5545. once: ISO 8601. event: null or left out, or a topic pattern',
);
const zone = text('IANA time zone in which the schedule counts; UTC');
const startsAt = nullable(text('no fire before this instant'));
const endsAt = nullable(text('no fire after this instant'));
const maxRuns = nullable(whole('the schedule ends after so many fires', 1));

/**
 * What `create_task` takes: the fields of `POST /tasks`, told so that a language model can fill them in. What the
 * service says of them (bounds, whether a schedule can be read) holds as well and is answered by itself.
 */
export const taskParameters: Readonly<Record<string, TSchema>> = {
  title: text('short name', { maxLength: 200 }),
  description: text('what the task is for', { maxLength: 2000 }),
  schedule_kind: oneOf('how it is scheduled; event: runs when an event is published', kinds),
  schedule_expr: Type.Optional(nullable(expression)),
  payload: Type.Unsafe<object>({
    type: 'object',
    description:
      'what a run does: `pipeline`, an array of steps `{"id"?, "uses": <tool>, "with": <its arguments>, "save_as"?, "if"?}`, and `params`, an object that steps read as `${params.name}`. `${steps.<id>.<field>}` is the result of an earlier step',
    properties: { pipeline: { type: 'array' }, params: { type: 'object' } },
    required: ['pipeline'],
  }),
  created_by: Type.Optional(text('id of the agent that owns it; the caller')),
  timezone: Type.Optional(zone),
  priority: Type.Optional(whole('1 goes first; 5', 1, 9)),
  max_retries: Type.Optional(whole('3', 0, 50)),
  backoff_strategy: Type.Optional(
    oneOf('exponential_jitter', ['exponential_jitter', 'linear', 'fixed']),
  ),
  retry_delay_seconds: Type.Optional(Type.Number({ description: '1', minimum: 0 })),
  retry_max_delay_seconds: Type.Optional(Type.Number({ description: '300', minimum: 0 })),
  timeout_seconds: Type.Optional(
    nullable(Type.Number({ description: 'of a run, retries included', exclusiveMinimum: 0 })),
  ),
  concurrency_key: Type.Optional(
    nullable(text('tasks of one owner with the same key share a limit of runs')),
  ),
  concurrency_limit: Type.Optional(whole('of the key; 1', 1)),
  overlap_policy: Type.Optional(
    oneOf('while another run of the task is unfinished; allow', [
      'allow',
      'skip',
      'queue',
      'cancel_running',
    ]),
  ),
  dedupe_key: Type.Optional(nullable(text('a run with a key that was used is a duplicate'))),
  dedupe_window_seconds: Type.Optional(nullable(whole('how long a dedupe key counts', 0))),
  misfire_policy: Type.Optional(
    oneOf('which of the fires that came too late run; latest', ['latest', 'skip', 'all']),
  ),
  misfire_grace_seconds: Type.Optional(whole('what is too late; 60', 0)),
  starts_at: Type.Optional(startsAt),
  ends_at: Type.Optional(endsAt),
  max_runs: Type.Optional(maxRuns),
  jitter_seconds: Type.Optional(whole('spreads tasks that are due together; 0', 0)),
  tags: Type.Optional(Type.Array(text('a tag'), { description: 'for finding it' })),
  pause_after_failures: Type.Optional(nullable(whole('pauses the task after so many', 1))),
};

/** What `preview_schedule` takes: a schedule, or the id of a task that has one. */
export const previewParameters: TObject = Type.Object(
  {
    task_id: Type.Optional(text('a task, instead of the fields of a schedule')),
    schedule_kind: Type.Optional(oneOf('how it is scheduled', kinds)),
    schedule_expr: Type.Optional(nullable(expression)),
    timezone: Type.Optional(zone),
    starts_at: Type.Optional(startsAt),
    ends_at: Type.Optional(endsAt),
    max_runs: Type.Optional(maxRuns),
    from: Type.Optional(text('fires strictly after this instant; now')),
    count: Type.Optional(whole('how many; 10', 1, 1000)),
  },
  { additionalProperties: false },
);
