import type { JsonObject } from '../../domain/json.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';

/** A task with a history for the web page. */
export interface ShownTask {
  readonly definition: Partial<TaskDefinition>;
  readonly steps: readonly JsonObject[];
  /** Approximate duration of its runs in milliseconds. */
  readonly takes: number;
  /** The share of failed runs, from 0 to 1, and their error. */
  readonly fails?: readonly [share: number, error: string];
  /** The share of runs with a second attempt, from 0 to 1. */
  readonly retries?: number;
}

const cron = (
  title: string,
  schedule_expr: string,
  more: Partial<TaskDefinition> = {},
): Partial<TaskDefinition> => ({
  title,
  schedule_kind: 'cron',
  schedule_expr,
  timezone: 'Europe/Berlin',
  ...more,
});

const pull = { id: 'pull', uses: 'echo', with: { rows: 1240 } };
const shape = {
  id: 'shape',
  uses: 'transform',
  with: { expression: 'rows', input: '${steps.pull}' },
};
const rest = (seconds: number): JsonObject => ({
  id: 'crunch',
  uses: 'sleep',
  with: { seconds },
  timeout_seconds: seconds + 60,
});
const note = { id: 'note', uses: 'log', with: { message: 'done at ${now}' } };

/** Tasks of a small company: frequent ones, nightly ones, failing ones. */
export const shownTasks: readonly ShownTask[] = [
  {
    definition: cron('Check that the shop answers', '*/2 * * * *', {
      tags: ['shop', 'watch'],
      priority: 2,
      max_retries: 1,
    }),
    steps: [{ id: 'look', uses: 'echo', with: { status: 200 } }, note],
    takes: 180,
    fails: [0.01, 'GET https://shop.example/health answered 503'],
    retries: 0.03,
  },
  {
    definition: cron('Index the catalogue', '*/10 * * * *', {
      tags: ['shop', 'search'],
      overlap_policy: 'skip',
      timeout_seconds: 900,
    }),
    steps: [pull, shape, rest(240), note],
    takes: 214_000,
    retries: 0.08,
  },
  {
    definition: cron('Take over orders', '*/15 * * * *', { tags: ['shop', 'orders'] }),
    steps: [pull, rest(45), shape, note],
    takes: 42_000,
    fails: [0.04, 'the warehouse did not answer: connect ECONNREFUSED 10.0.3.17:8443'],
    retries: 0.1,
  },
  {
    definition: cron('Exchange rates', '5 * * * *', { tags: ['finance'], timezone: 'UTC' }),
    steps: [pull, shape],
    takes: 900,
    fails: [0.02, 'GET https://rates.example/latest answered 429'],
  },
  {
    definition: cron('Morning report', '0 9 * * MON-FRI', {
      tags: ['reports'],
      description: 'The figures of the day before, on weekdays at nine',
    }),
    steps: [pull, shape, rest(20), { id: 'send', uses: 'echo', with: { to: 'sales' } }, note],
    takes: 31_000,
  },
  {
    definition: cron('Back up the database', '30 2 * * *', {
      tags: ['backup'],
      priority: 1,
      timeout_seconds: 7200,
      overlap_policy: 'queue',
    }),
    steps: [{ ...rest(600), id: 'dump' }, pull, note],
    takes: 1_260_000,
    fails: [0.2, 'no space left on device: /backup/nightly'],
  },
  {
    definition: cron('Remind of open invoices', '0 8 * * MON', { tags: ['finance', 'mail'] }),
    steps: [pull, shape, note],
    takes: 12_000,
  },
  {
    definition: cron('Clear the cache', '17 * * * *', { tags: ['shop'] }),
    steps: [{ id: 'clear', uses: 'echo', with: { keys: 8121 } }],
    takes: 1_400,
  },
  {
    definition: {
      title: 'Close the month',
      schedule_kind: 'rrule',
      schedule_expr: 'FREQ=MONTHLY;BYDAY=-1MO,-1TU,-1WE,-1TH,-1FR;BYSETPOS=-1;BYHOUR=18;BYMINUTE=0',
      timezone: 'America/New_York',
      tags: ['finance'],
    },
    steps: [pull, shape, rest(120), note],
    takes: 95_000,
  },
  {
    definition: {
      title: 'Welcome new customers',
      schedule_kind: 'event',
      schedule_expr: 'customers.*.created',
      tags: ['mail'],
    },
    steps: [pull, { id: 'send', uses: 'echo', with: { template: 'welcome' } }],
    takes: 2_100,
  },
  {
    definition: cron('Rebuild the recommendations', '0 */3 * * *', {
      tags: ['shop', 'search'],
      concurrency_key: 'gpu',
    }),
    steps: [pull, rest(300), shape, note],
    takes: 640_000,
    fails: [0.12, 'out of memory after 5 min 12 s\n    at Trainer.step (trainer.js:211:9)'],
    retries: 0.1,
  },
  {
    definition: cron('Prices of suppliers', '40 6,12,18 * * *', { tags: ['shop', 'finance'] }),
    steps: [pull, shape, note],
    takes: 18_000,
    fails: [0.06, 'steps.pull.rows is no list, but null'],
  },
];

/** Titles of the plain tasks. */
export const plainTitles = [
  'Export for branch',
  'Newsletter to segment',
  'Sync of device',
  'Report for customer',
  'Clean up of tenant',
  'Statement for account',
] as const;
