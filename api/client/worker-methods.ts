import type * as Workers from '../schemas/response-schemas-workers.ts';
import type * as Asked from '../schemas/worker-schemas.ts';
import type { Api } from './client.ts';

/** Registers workers, and gets their jobs. */
export const workers = ({ read, send, sendTo, act, actWith }: Api) => ({
  register: send<Workers.WorkerRegistered, Asked.RegisterWorker>('POST', '/workers'),
  list: read<Workers.WorkerPage, Asked.WorkerQuery>('/workers'),
  drain: act<Workers.WorkerDrained>('DELETE', '/workers/:id'),
  takeJobs: actWith<Workers.JobList, Asked.PollQuery>('POST', '/workers/:id/jobs'),
  sendResults: sendTo<Workers.ResultsTaken, Asked.JobResults>('POST', '/workers/:id/results'),
});

/** A worker's reports about its jobs. */
export const jobs = ({ sendTo }: Api) => ({
  heartbeat: sendTo<Workers.JobKept, Asked.JobHeartbeat>('POST', '/jobs/:id/heartbeat'),
  complete: sendTo<Workers.JobEnded, Asked.CompleteJob>('POST', '/jobs/:id/complete'),
  fail: sendTo<Workers.JobEnded, Asked.FailJob>('POST', '/jobs/:id/fail'),
});
