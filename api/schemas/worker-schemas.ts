import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { workerStates } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';

/** Request schemas of workers and their jobs. */

/** The most jobs in one response, and the most results in one request. */
export const MAX_JOBS = 100;

const wellFormed = {
  format: 'well-formed',
  description: 'a string of well-formed Unicode',
} as const;

const OfferedTool = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9_.:/-]{1,200}$',
      description: '1 to 200 of A-Z a-z 0-9 _ . : / -',
    }),
    description: Type.String({ maxLength: 1000 }),
    schema: Type.Unsafe<Record<string, unknown>>({
      ...AnyObject,
      description: 'JSON schema of the arguments; `{}` allows any',
    }),
  },
  { title: 'OfferedTool', additionalProperties: false },
);

export const RegisterWorker = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100, ...wellFormed }),
    tools: Type.Array(OfferedTool, { minItems: 1, maxItems: 100 }),
    slots: Type.Integer({
      minimum: 1,
      maximum: 10_000,
      description: 'how many jobs it does at a time',
    }),
    labels: Type.Optional(
      Type.Record(
        Type.String({ maxLength: 100, ...wellFormed }),
        Type.String({ maxLength: 200, ...wellFormed }),
        { maxProperties: 20, description: 'labels that the `on` of a step can require' },
      ),
    ),
  },
  { title: 'RegisterWorker', additionalProperties: false },
);
export type RegisterWorker = Static<typeof RegisterWorker>;

export const WorkerQuery = Type.Object({
  ...pageParameters,
  state: Type.Unsafe<(typeof workerStates)[number]>({
    type: 'string',
    enum: [...workerStates],
    default: 'active',
  }),
});
export type WorkerQuery = Static<typeof WorkerQuery>;

export const PollQuery = Type.Object({
  wait: Type.Number({ minimum: 0, maximum: 60, default: 0 }),
  max: Type.Integer({ minimum: 1, maximum: MAX_JOBS, default: 1 }),
});
export type PollQuery = Static<typeof PollQuery>;

const lease = Type.String({ minLength: 1, maxLength: 200 });
const error = Type.String({ maxLength: 100_000, description: 'why; 4,000 characters are kept' });
const retryable = Type.Boolean({
  description: 'whether to try the step again, as often as its `max_retries` allows',
});
const result = Type.Unknown({ description: "the step's result" });

const LogLine = closed({
  level: OneOf(['debug', 'info', 'warn', 'error'] as const),
  message: Type.String({ maxLength: 100_000, description: '1,000 characters are kept' }),
  at: Type.Optional(
    Type.String({
      maxLength: 64,
      pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`,
      description: 'as 2026-03-01T09:00:00Z; default: now',
    }),
  ),
  data: Type.Optional(Type.Unknown()),
});

export const JobHeartbeat = Type.Object(
  {
    lease,
    progress: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    log: Type.Optional(Type.Array(LogLine, { maxItems: 100 })),
  },
  { title: 'JobHeartbeat', additionalProperties: false },
);
export type JobHeartbeat = Static<typeof JobHeartbeat>;

export const CompleteJob = Type.Object(
  { lease, result },
  { title: 'CompleteJob', additionalProperties: false },
);
export type CompleteJob = Static<typeof CompleteJob>;

export const FailJob = Type.Object(
  { lease, error, retryable },
  { title: 'FailJob', additionalProperties: false },
);
export type FailJob = Static<typeof FailJob>;

const job_id = Type.String({ format: 'uuid', description: 'a UUID' });

export const JobResults = Type.Object(
  {
    results: Type.Array(
      Type.Union([closed({ job_id, lease, result }), closed({ job_id, lease, error, retryable })]),
      { minItems: 1, maxItems: MAX_JOBS },
    ),
  },
  { title: 'JobResults', additionalProperties: false },
);
export type JobResults = Static<typeof JobResults>;
