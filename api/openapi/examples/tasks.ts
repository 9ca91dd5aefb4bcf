import { taskDefaults } from '../../../domain/tasks/task-definition.ts';
import type { Examples } from '../examples.ts';
import {
  agentId,
  backfillId,
  created,
  done,
  due,
  ended,
  eventId,
  next,
  page,
  position,
  runId,
  taskId,
} from './values.ts';

const payload = {
  params: { shop: 'https://shop.example' },
  pipeline: [
    {
      id: 'orders',
      uses: 'http.request',
      with: { url: '${params.shop}/orders', query: { open: true } },
      max_retries: 2,
    },
    {
      id: 'count',
      uses: 'transform',
      with: { expression: 'length(@)', input: '${steps.orders.body}' },
    },
    {
      uses: 'events.publish',
      with: { topic: 'orders.counted', payload: { count: '${steps.count}' } },
      if: 'steps.count > `0`',
    },
  ],
};

/** The request that creates the example task. */
const given = {
  title: 'Morning report',
  description: 'Counts the open orders on weekdays at nine',
  schedule_kind: 'cron',
  schedule_expr: '0 9 * * MON-FRI',
  timezone: 'Europe/Berlin',
  payload,
  params_schema: {
    type: 'object',
    properties: { shop: { type: 'string', description: 'address of the shop', minLength: 1 } },
    required: ['shop'],
    additionalProperties: false,
  },
  created_by: agentId,
  tags: ['sales'],
};

const params = { shop: 'https://outlet.example' };

const task = {
  ...given,
  id: taskId,
  schedule_text: 'at 09:00, Monday through Friday, Europe/Berlin',
  ...taskDefaults,
  ...given,
  status: 'active',
  created_at: created,
  updated_at: created,
  next_run_at: due,
  last_run_at: null,
  pause_reason: null,
  paused: null,
  snoozed: null,
  exhausted: false,
  revision: 0,
  warnings: [],
};

const status = (message: string, from: string, to: string, more: object = {}) => ({
  responses: {
    200: done(message, { task_id: taskId, old_status: from, new_status: to, ...more }),
  },
});

const span = {
  task_id: taskId,
  from: '2026-11-01T00:00:00.000Z',
  to: '2026-11-10T23:59:59.999Z',
  only: 'missing',
  concurrency: 5,
  total: 7,
  params,
};
const backfill = {
  id: backfillId,
  ...span,
  task_revision: 0,
  created_by: agentId,
  requested_by: agentId,
  state: 'running',
  canceled_by: null,
  requested: 4,
  existing: 0,
  unfinished: 1,
  succeeded: 3,
  failed: 0,
  canceled: 0,
  skipped: 0,
  up_to: '2026-11-05T08:00:00.000Z',
  created_at: created,
  updated_at: created,
  finished_at: null,
};

export const taskExamples: Readonly<Record<string, Examples>> = {
  createTask: { body: given, responses: { 201: task } },
  listTasks: { responses: { 200: page(task) } },
  getTask: { responses: { 200: task } },
  updateTask: {
    body: { schedule_expr: '30 8 * * MON-FRI', priority: 2 },
    responses: {
      200: {
        ...task,
        schedule_expr: '30 8 * * MON-FRI',
        priority: 2,
        next_run_at: '2026-11-23T07:30:00.000Z',
        updated_at: ended,
        revision: 1,
      },
    },
  },
  checkTask: {
    body: { task_id: taskId, schedule_expr: '30 8 * * MON-FRI' },
    responses: {
      200: {
        schedule_text: 'at 08:30, Monday through Friday, Europe/Berlin',
        next_fire_at: '2026-11-23T07:30:00.000Z',
        changes: [
          { path: 'schedule_expr', before: given.schedule_expr, after: '30 8 * * MON-FRI' },
        ],
        warnings: [],
      },
    },
  },
  listPipelineTools: {
    responses: {
      200: {
        tools: [{ name: 'echo', schema: { type: 'object' }, own: true }],
        step: { type: 'object', required: ['uses'] },
      },
    },
  },
  listDecidedFires: {
    responses: {
      200: {
        task_id: taskId,
        from: '2026-11-20T00:00:00.000Z',
        to: '2026-11-23T23:59:59.999Z',
        items: [
          {
            revision: 2,
            reason: 'fired',
            from: due,
            to: due,
            count: 1,
            decided_at: due,
            task_revision: 0,
            run_id: runId,
            run: {
              id: runId,
              state: 'succeeded',
              skip_reason: null,
              error: null,
              started_at: due,
              finished_at: '2026-11-23T08:00:02.000Z',
            },
          },
          {
            revision: 1,
            reason: 'paused',
            from: '2026-11-20T08:00:00.000Z',
            to: '2026-11-20T08:00:00.000Z',
            count: 1,
            decided_at: '2026-11-20T12:00:00.000Z',
            task_revision: 0,
            run_id: null,
            run: null,
          },
        ],
        next_cursor: null,
      },
    },
  },
  getTaskCalendar: {
    parameters: { from: '2026-11-23', to: '2026-11-23' },
    responses: {
      200: {
        task_id: taskId,
        timezone: 'Europe/Berlin',
        by: 'day',
        parts: [
          {
            date: '2026-11-23',
            from: '2026-11-22T23:00:00.000Z',
            to: '2026-11-23T22:59:59.999Z',
            fired: 1,
            skipped: { missed: 0, paused: 0, snoozed: 0, bounds: 0 },
            runs: { succeeded: 1, failed: 0, canceled: 0, unfinished: 0, skipped: 0 },
          },
        ],
        gaps: [],
      },
    },
  },
  listTaskOutcomes: {
    responses: {
      200: {
        period_days: 7,
        items: [
          {
            task_id: taskId,
            runs: [{ id: runId, state: 'succeeded', queued_at: due, duration_seconds: 2 }],
            p95_execution_time_seconds: 2,
            failing: false,
            failed_in_period: true,
          },
        ],
      },
    },
  },
  listDueTasks: {
    responses: { 200: page({ task_id: taskId, title: given.title, next_run_at: due }) },
  },
  runTask: {
    body: { params },
    responses: { 200: done('the run is requested', { task_id: taskId, run_id: runId }) },
  },
  snoozeTask: {
    body: { delay_seconds: 900, reason: 'the shop is being updated' },
    responses: {
      200: done('the next fire is postponed', {
        task_id: taskId,
        delay_seconds: 900,
        next_run_at: '2026-11-23T08:15:00.000Z',
      }),
    },
  },
  pauseTask: status('the task is paused', 'active', 'paused'),
  resumeTask: status('the task is resumed', 'paused', 'active'),
  cancelTask: status('the task is canceled', 'active', 'canceled', { canceled_runs: 1 }),
  explainTask: {
    responses: {
      200: {
        task_id: taskId,
        at: due,
        fired: true,
        reason: 'fired',
        message: 'The task fired on time.',
        run_id: runId,
        previous_fire: '2026-11-20T08:00:00.000Z',
        next_fire: next,
        evidence: [
          {
            stream: `fires-${taskId}`,
            revision: 1,
            position,
            event_id: eventId,
            type: 'Fired',
            at: due,
            actor: 'service',
            reason: null,
          },
        ],
      },
    },
  },
  previewSchedule: {
    body: {
      schedule_kind: 'cron',
      schedule_expr: '30 2 * * *',
      timezone: 'Europe/Berlin',
      from: '2026-03-28T00:00:00Z',
      count: 2,
    },
    responses: {
      200: {
        schedule_text: 'at 02:30, every day, Europe/Berlin',
        fires: [
          { at: '2026-03-28T01:30:00.000Z', local: '2026-03-28T02:30:00+01:00', note: null },
          {
            at: '2026-03-29T01:30:00.000Z',
            local: '2026-03-29T03:30:00+02:00',
            note: '02:30 does not exist on this day; the clocks go forward',
          },
        ],
        warnings: [],
      },
    },
  },
  backfillTask: {
    body: { from: '2026-11-01', to: '2026-11-10', params },
    responses: {
      200: done('nothing was requested', {
        ...span,
        existing: 0,
        to_request: 7,
        first: ['2026-11-02T08:00:00.000Z', '2026-11-03T08:00:00.000Z'],
      }),
      202: done('the backfill is running', {
        ...span,
        backfill_id: backfillId,
        task_revision: 0,
        requested: 0,
        state: 'running',
      }),
    },
  },
  listBackfills: { responses: { 200: page(backfill) } },
  getBackfill: { responses: { 200: backfill } },
  cancelBackfill: {
    responses: {
      200: done('the backfill is canceled', {
        backfill_id: backfillId,
        task_id: taskId,
        old_state: 'running',
        new_state: 'canceled',
        requested: backfill.requested,
        total: span.total,
      }),
    },
  },
};
