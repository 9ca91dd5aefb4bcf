import type { Examples } from '../examples.ts';
import { created, ended, runId, started, taskId } from './values.ts';

const figures = {
  total_runs: 20,
  successful_runs: 19,
  failed_runs: 1,
  skipped_runs: 0,
  success_rate: 0.95,
  failure_rate: 0.05,
  avg_execution_time_seconds: 1.2,
  p50_execution_time_seconds: 1.1,
  p95_execution_time_seconds: 2.4,
};
const timezone = 'Europe/Berlin';
const start = '2026-11-22T23:00:00.000Z';
const by_day = [{ date: '2026-11-23', start, ...figures }];
const by_hour = [{ start, ...figures }];
const span = { timezone, start, end: '2026-11-23T23:00:00.000Z' };

const task = { task_id: taskId, failing: true, last_success: started, last_failure: ended };

export const statisticsExamples: Readonly<Record<string, Examples>> = {
  getTaskStatistics: {
    parameters: { interval: 'hour', days: 1 },
    responses: {
      200: {
        task_id: taskId,
        period_days: 1,
        ...figures,
        last_run: ended,
        last_success: ended,
        last_failure: created,
        timezone,
        by_day,
        by_hour,
      },
    },
  },
  getStatistics: {
    responses: {
      200: {
        period_days: 30,
        ...figures,
        total_tasks_executed: 4,
        runs_per_day: 0.67,
        timezone,
        by_day,
      },
    },
  },
  getErrorStatistics: {
    parameters: { days: 1 },
    responses: {
      200: {
        ...span,
        total: 1,
        failed_runs: 2,
        bucket_starts: [start],
        items: [
          {
            id: '5d41402abc4b2a76',
            error: 'orders: responded with 503 after <n> ms',
            example: 'orders: responded with 503 after 812 ms',
            count: 2,
            first: started,
            last: ended,
            last_run_id: runId,
            tasks: [{ task_id: taskId, count: 2 }],
            task_count: 1,
            has_more_tasks: false,
            counts: [2],
          },
        ],
        has_more: false,
      },
    },
  },
  rankTasks: {
    parameters: { days: 1, sort: 'failed' },
    responses: { 200: { ...span, sort: 'failed', total: 1, items: [{ ...task, ...figures }] } },
  },
};
