import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { workerStates } from '../../domain/vocabulary.ts';
import { errorStatuses, type ErrorCode } from '../errors.ts';
import { agentName, done, id, pageOf, time } from './response-schemas.ts';

/** Responses about workers and their jobs. */

export const WorkerRegistered = Type.Object(
  {
    worker_id: id,
    lease_seconds: Type.Integer({
      minimum: 1,
      description: 'a worker loses a job after this many seconds without a heartbeat',
    }),
    heartbeat_seconds: Type.Integer({
      minimum: 1,
      description: 'how often to send a heartbeat of each job',
    }),
  },
  { title: 'WorkerRegistered', additionalProperties: false },
);
export type WorkerRegistered = Static<typeof WorkerRegistered>;

export const Worker = Type.Object(
  {
    id,
    agent_id: id,
    agent_name: agentName,
    name: Type.String(),
    state: OneOf(workerStates),
    tools: Type.Array(
      closed({ name: Type.String(), description: Type.String(), schema: AnyObject }),
    ),
    slots: Type.Integer({ minimum: 1 }),
    labels: Type.Record(Type.String(), Type.String()),
    registered_at: time,
    ended_at: Type.Union([time, Type.Null()], {
      description: 'when it was drained, or removed as silent',
    }),
    last_seen_at: Type.Union([time, Type.Null()], {
      description: 'null: not within two days, or unknown',
    }),
    jobs: Type.Array(closed({ job_id: id, run_id: id, leased_until: time }), {
      description: 'jobs that it has',
    }),
  },
  { title: 'Worker', additionalProperties: false },
);
export type Worker = Static<typeof Worker>;

export const WorkerPage = pageOf('WorkerPage', Worker);
export type WorkerPage = Static<typeof WorkerPage>;

export const WorkerDrained = done({
  worker_id: id,
  jobs: Type.Integer({ minimum: 0, description: 'number of jobs that it still has' }),
});
export type WorkerDrained = Static<typeof WorkerDrained>;

export const Job = Type.Object(
  {
    job_id: id,
    lease: Type.String({ description: 'opaque; must be sent with every report about the job' }),
    run_id: id,
    task_id: id,
    step: Type.String(),
    tool: Type.String(),
    arguments: Type.Unknown(),
    idempotency_key: Type.String({
      description: 'the same for all tries of the step, and for all workers that get it',
    }),
    attempt: Type.Integer({
      minimum: 1,
      description: 'number of the try of the step; a lost lease does not count as a try',
    }),
    deadline: Type.String({
      format: 'date-time',
      description: "when the try times out, by the step's `timeout_seconds`",
    }),
    traceparent: Nullable(Type.String({ description: 'of the run, if it is traced' })),
  },
  { title: 'Job', additionalProperties: false },
);
export type Job = Static<typeof Job>;

export const JobList = Type.Object(
  { jobs: Type.Array(Job) },
  { title: 'JobList', additionalProperties: false },
);
export type JobList = Static<typeof JobList>;

export const JobKept = Type.Object(
  {
    cancel_requested: Type.Boolean({
      description: 'the job is no longer needed: its run was canceled, or the step is over',
    }),
  },
  { title: 'JobKept', additionalProperties: false },
);
export type JobKept = Static<typeof JobKept>;

export const JobEnded = done({ job_id: id });
export type JobEnded = Static<typeof JobEnded>;

export const ResultsTaken = Type.Object(
  {
    results: Type.Array(
      closed({
        job_id: id,
        status: Type.Integer({ description: 'as for a single request: 200, 404 or 409' }),
        error: Nullable(OneOf(Object.keys(errorStatuses) as ErrorCode[])),
        message: Nullable(Type.String()),
      }),
      { description: 'in the order of the request' },
    ),
  },
  { title: 'ResultsTaken', additionalProperties: false },
);
export type ResultsTaken = Static<typeof ResultsTaken>;
