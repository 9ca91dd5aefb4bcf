import type { RefusalError } from '../../../domain/errors.ts';
import type { ApiDependencies, JobAnswer, JobSender } from '../../dependencies.ts';
import {
  endpoint,
  idIn,
  success,
  type EndpointResponse,
  type Call,
  type Endpoint,
} from '../../endpoint.ts';
import { errorStatuses, toHttpError, unavailable } from '../../errors.ts';
import {
  CompleteJob,
  FailJob,
  JobHeartbeat,
  JobResults,
  PollQuery,
} from '../../schemas/worker-schemas.ts';
import {
  JobEnded,
  JobKept,
  JobList,
  ResultsTaken,
} from '../../schemas/response-schemas-workers.ts';
import { activeWorkerInPath, ownWorkerInPath } from './worker-lookup.ts';

const scopes = ['jobs:work'] as const;

/**
 * The largest body that workers may send about jobs. It does not depend on the limit of other bodies, because the SDKs
 * rely on it.
 */
const MAX_BODY_BYTES = 1_048_576;

const poll = endpoint('POST /workers/:worker_id/jobs', {
  operationId: 'takeJobs',
  summary: 'Gives a worker matching jobs, by priority; waits for the first one',
  description:
    'A job matches if the worker offers its tool, has its labels, and accepts its arguments. Each job is leased to the worker.',
  scopes,
  query: PollQuery,
  responses: { 200: JobList },
  refusals: ['conflict'],
  async handle(call) {
    const { dependencies, query } = call;
    const worker = await activeWorkerInPath(call);
    const [signal, release] = leaving(dependencies, call.gone());
    try {
      const jobs = await dependencies.jobs.poll(worker, query.max, query.wait, signal);
      if (jobs.length === 0 && dependencies.stopping.aborted) {
        throw unavailable('workers', 'the service is stopping; ask for jobs again');
      }
      return { body: { jobs } };
    } finally {
      release();
    }
  },
});

const heartbeat = endpoint('POST /jobs/:job_id/heartbeat', {
  operationId: 'keepJob',
  summary: 'Extends the lease of a job, and reports its progress',
  description:
    'Progress and log lines appear in the run at once. The log of a step has at most 50 lines.',
  scopes,
  body: JobHeartbeat,
  maxBodyBytes: MAX_BODY_BYTES,
  responses: { 200: JobKept },
  refusals: ['conflict'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const { lease, progress, log } = body;
    const report = { progress, ...(log === undefined ? {} : { log }) };
    const job = { job: idIn(call, 'job_id'), lease };
    const kept = await dependencies.jobs.heartbeat(job, report, senderOf(call), context);
    return { body: kept };
  },
});

const complete = endpoint('POST /jobs/:job_id/complete', {
  operationId: 'completeJob',
  summary: "Completes a job with the step's result",
  scopes,
  body: CompleteJob,
  maxBodyBytes: MAX_BODY_BYTES,
  idempotent: true,
  responses: { 200: JobEnded },
  refusals: ['conflict'],
  handle: (call) =>
    finish(call, { job: idIn(call, 'job_id'), lease: call.body.lease, result: call.body.result }),
});

const fail = endpoint('POST /jobs/:job_id/fail', {
  operationId: 'failJob',
  summary: 'Fails a job; the step may be tried again if the failure is retryable',
  scopes,
  body: FailJob,
  maxBodyBytes: MAX_BODY_BYTES,
  idempotent: true,
  responses: { 200: JobEnded },
  refusals: ['conflict'],
  handle(call) {
    const { lease, error, retryable } = call.body;
    return finish(call, { job: idIn(call, 'job_id'), lease, error, retryable });
  },
});

const results = endpoint('POST /workers/:worker_id/results', {
  operationId: 'sendJobResults',
  summary: 'Completes or fails many jobs, with an outcome for each',
  scopes,
  body: JobResults,
  maxBodyBytes: MAX_BODY_BYTES,
  idempotent: true,
  responses: { 200: ResultsTaken },
  refusals: ['conflict'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const id = await ownWorkerInPath(call);
    const answers = body.results.map((sent): JobAnswer => {
      const { job_id, ...answer } = sent;
      return { job: job_id.toLowerCase(), ...answer };
    });
    const outcomes = await dependencies.jobs.finish(answers, senderOf(call), context);
    dependencies.jobs.note(id);
    const taken = outcomes.map((refusal, index) => {
      const job_id = answers[index]?.job ?? '';
      if (refusal === null) return { job_id, status: 200, error: null, message: null };
      const { code: error, message } = toHttpError(refusal);
      noteRefusal(call, job_id, refusal);
      return { job_id, status: errorStatuses[error], error, message };
    });
    return { body: { results: taken } };
  },
});

export const jobEndpoints: readonly Endpoint[] = [poll, heartbeat, complete, fail, results];

async function finish(call: Call, answer: JobAnswer): Promise<EndpointResponse> {
  const { dependencies, context } = call;
  const [refusal = null] = await dependencies.jobs.finish([answer], senderOf(call), context);
  if (refusal !== null) throw refusal;
  return success('the job is over', { job_id: answer.job });
}

/** Late results are recorded, as for single requests. */
function noteRefusal(call: Call, jobId: string, refusal: RefusalError): void {
  const { dependencies, context, action } = call;
  const { code } = toHttpError(refusal);
  const status = errorStatuses[code];
  if (status !== 409) return;
  const path = `/jobs/${jobId}`;
  const { agentId } = senderOf(call);
  dependencies.refusals.note({ agentId, action, path, status, code, context });
}

function senderOf({ caller }: Pick<Call, 'caller'>): JobSender {
  if (caller === null) throw new Error('the endpoint needs a token');
  return caller;
}

/** A signal that aborts once the client has left or the service stops. @returns also a function that releases it */
function leaving(
  { stopping }: Pick<ApiDependencies, 'stopping'>,
  gone: AbortSignal,
): readonly [AbortSignal, () => void] {
  const leave = new AbortController();
  const end = (): void => leave.abort();
  // `AbortSignal.any` would leave a reference to each call at `stopping`.
  for (const each of [stopping, gone]) {
    each.addEventListener('abort', end, { once: true });
    if (each.aborted) end();
  }
  const release = (): void => {
    for (const each of [stopping, gone]) each.removeEventListener('abort', end);
  };
  return [leave.signal, release];
}
