import type { Examples } from '../examples.ts';
import { agentId, done, due, ended, page, runId, started, taskId } from './values.ts';

const workerId = '01a1fc53-3c1e-7d20-9b77-2f0c5a81e6d4';
const jobId = '01a1fc64-77aa-7b11-8c3d-90e1f4b2a6c8';
const lease = `${runId}.q3XkUo0mT1mCwYv0b8m3hA`;
const tool = {
  name: 'emails.send',
  description: 'Sends an email',
  schema: {
    type: 'object',
    properties: { to: { type: 'string' }, subject: { type: 'string' } },
    required: ['to', 'subject'],
  },
};
const about = { name: 'mailer-1', slots: 4, labels: { region: 'eu' } };
const error = 'the mail server is unavailable';
const ofJob = { job_id: jobId };
const ofWorker = { worker_id: workerId };

export const workerExamples: Readonly<Record<string, Examples>> = {
  registerWorker: {
    body: { ...about, tools: [tool] },
    responses: { 201: { ...ofWorker, lease_seconds: 30, heartbeat_seconds: 10 } },
  },
  listWorkers: {
    parameters: { state: 'active' },
    responses: {
      200: page({
        id: workerId,
        agent_id: agentId,
        agent_name: 'shop',
        ...about,
        state: 'active',
        tools: [tool],
        registered_at: due,
        ended_at: null,
        last_seen_at: ended,
        jobs: [{ ...ofJob, run_id: runId, leased_until: '2026-11-23T08:00:30.041Z' }],
      }),
    },
  },
  drainWorker: {
    parameters: ofWorker,
    responses: { 200: done('the worker gets no more jobs', { ...ofWorker, jobs: 1 }) },
  },
  takeJobs: {
    parameters: { ...ofWorker, wait: 30, max: 10 },
    responses: {
      200: {
        jobs: [
          {
            ...ofJob,
            lease,
            run_id: runId,
            task_id: taskId,
            step: 'welcome',
            tool: tool.name,
            arguments: { to: 'ada@example.com', subject: 'Welcome' },
            idempotency_key: `${runId}:welcome`,
            attempt: 1,
            deadline: '2026-11-23T08:01:00.041Z',
            traceparent: null,
          },
        ],
      },
    },
  },
  keepJob: {
    parameters: ofJob,
    body: {
      lease,
      progress: 0.5,
      log: [{ level: 'info', message: 'connected', at: started }],
    },
    responses: { 200: { cancel_requested: false } },
  },
  completeJob: {
    parameters: ofJob,
    body: { lease, result: { message_id: '<1742@example.com>' } },
    responses: { 200: done('the job is over', ofJob) },
  },
  failJob: {
    parameters: ofJob,
    body: { lease, error, retryable: true },
    responses: { 200: done('the job is over', ofJob) },
  },
  sendJobResults: {
    parameters: ofWorker,
    body: {
      results: [
        { ...ofJob, lease, result: { message_id: '<1742@example.com>' } },
        { job_id: '01a1fc64-77ab-7b11-8c3d-90e1f4b2a6c8', lease, error, retryable: true },
      ],
    },
    responses: {
      200: {
        results: [
          { ...ofJob, status: 200, error: null, message: null },
          {
            job_id: '01a1fc64-77ab-7b11-8c3d-90e1f4b2a6c8',
            status: 409,
            error: 'conflict',
            message: 'job 01a1fc64-77ab-7b11-8c3d-90e1f4b2a6c8 is over',
          },
        ],
      },
    },
  },
};
