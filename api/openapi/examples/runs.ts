import type { Examples } from '../examples.ts';
import {
  agentId,
  done,
  due,
  ended,
  eventId,
  message,
  page,
  position,
  retryId,
  runId,
  started,
  taskId,
} from './values.ts';

const item = {
  id: runId,
  task_id: taskId,
  created_by: agentId,
  lease_owner: null,
  leased_until: null,
  started_at: started,
  finished_at: ended,
  success: true,
  error: null,
  attempt: 1,
  output: {
    steps: { orders: { status: 200, body: [] }, count: 0 },
    summary: { total_steps: 3, executed_steps: 2, skipped_steps: 1 },
  },
  created_at: due,
  state: 'succeeded',
  trigger: 'schedule',
  scheduled_for: due,
  run_at: due,
  queued_at: due,
  priority: 5,
  task_revision: 0,
  params: { shop: 'https://shop.example' },
  event: null,
  retry_of: null,
  depth: 0,
  retried_by: null,
  parent_run_id: null,
  skip_reason: null,
  cancel_requested: false,
  waits: [],
};
const hashes: Readonly<Record<string, object>> = {
  orders: {
    arguments_hash: '41a1f82da9af5b9460ea200f59bb22d900a9f5b63a5ef1e3ff0e137e9dcc4864',
  },
  count: {
    arguments_hash: '5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9',
  },
};
const step = (name: string, result: unknown, status = 'succeeded') => ({
  step: name,
  status,
  result,
  error: null,
  started_at: started,
  finished_at: ended,
  attempt: 1,
  ...hashes[name],
  now: started,
});
const planned = (name: string, uses: string, needs: readonly string[], state = 'succeeded') => ({
  step: name,
  state,
  uses,
  group: null,
  needs,
  ...hashes[name],
});
const run = {
  ...item,
  attempts: [
    {
      attempt: 1,
      worker: 'host-4711-a',
      started_at: started,
      finished_at: ended,
      outcome: 'succeeded',
      error: null,
      step: null,
    },
  ],
  steps: [
    step('orders', { status: 200, body: [] }),
    step('count', 0),
    step('step_2', null, 'skipped'),
  ],
  plan: [
    planned('orders', 'http.request', []),
    planned('count', 'echo', ['orders']),
    planned('step_2', 'log', ['count'], 'skipped'),
  ],
  log: [],
};
const retry = { run_id: retryId, retry_of: runId, task_id: taskId };

const live = message(position, 'run', { ...item, state: 'running', success: null });

export const runExamples: Readonly<Record<string, Examples>> = {
  listRuns: {
    parameters: { error: 'timeout', input: 'shop.example', event_id: eventId },
    responses: { 200: page(item) },
  },
  getRun: { responses: { 200: run } },
  getRunArtifact: { responses: { 200: { status: 200, headers: {}, body: ['…'] } } },
  getLatestRun: { responses: { 200: run } },
  explainRun: {
    parameters: { step: 'orders' },
    responses: {
      200: {
        run_id: runId,
        state: 'succeeded',
        requested: {
          at: due,
          by: 'service',
          by_name: null,
          reason: null,
          text: 'The schedule of its task was due at 2026-11-23T08:00:00Z.',
        },
        waits_for: [],
        previous_run_id: retryId,
        next_run_id: null,
        step_times: [
          {
            step: 'orders',
            took_seconds: 1.1,
            measured: 50,
            p50_seconds: 0.4,
            p95_seconds: 0.6,
            slow: true,
          },
        ],
        input: {
          step: 'orders',
          value: { url: 'https://shop.example/orders', headers: { authorization: '***' } },
          exact: true,
        },
      },
    },
  },
  cancelRuns: {
    body: { task_id: taskId, state: 'queued', limit: 100 },
    responses: {
      200: done('1 run is canceled', {
        dry_run: false,
        count: 1,
        passed_over: { ended: 0 },
        left: 0,
        next_cursor: null,
        runs: [{ run_id: runId, task_id: taskId, old_state: 'queued' }],
      }),
    },
  },
  cancelRun: {
    responses: { 200: done('the run is canceled', { run_id: runId, old_state: 'running' }) },
  },
  retryRun: {
    parameters: { from: 'failed_step' },
    body: { params: { shop: 'https://outlet.example' } },
    responses: { 200: done('the retry is requested', retry) },
  },
  redriveRuns: {
    body: { task_id: taskId, start_time: '2026-11-23T00:00:00Z', error: 'timeout', limit: 100 },
    responses: {
      200: done('1 failed run is retried', {
        dry_run: false,
        count: 1,
        passed_over: {
          succeeded: 0,
          under_way: 0,
          task_canceled: 0,
          not_owned: 0,
          not_failed: 0,
          invalid_params: 0,
        },
        left: 0,
        next_cursor: null,
        runs: [retry],
      }),
    },
  },
  getConcurrencyKey: {
    responses: {
      200: {
        key: 'warehouse',
        limit: 1,
        holders: [{ run_id: runId, task_id: taskId, since: started }],
        waiters: [{ run_id: retryId, task_id: taskId, since: ended, priority: 5 }],
        more_waiters: 0,
      },
    },
  },
  watchRuns: { parameters: { state: 'running' }, responses: { 200: live } },
  watchTaskRuns: { parameters: { state: 'running' }, responses: { 200: live } },
};
