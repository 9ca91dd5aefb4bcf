import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';

/** How a run ended. */
export type End = 'succeeded' | 'skipped' | 'canceled' | 'failed';

/** A kind of task, and its expected results, whichever process is killed. */
export interface Kind {
  readonly name: string;
  /** Fields of its tasks, by id. */
  readonly tasks: Readonly<Record<string, Partial<TaskDefinition>>>;
  /** Nominal times of each task, or the times when events are published for it. In seconds after the start. */
  readonly due: readonly number[];
  readonly published?: boolean;
  /** Added to the due time in the payload of each published event. */
  readonly padding?: string;
  /** At most one run of all its tasks may run at once. */
  readonly exclusive?: boolean;
  /** How long after its last run a manual run must succeed. Milliseconds; default 0. */
  readonly restsFor?: number;
  /** How the run of a nominal time may end. A crash may change which runs overlap, but loses and duplicates none. */
  readonly ends: (due: number) => readonly End[];
}

const succeeds = (): readonly End[] => ['succeeded'];

const act = (id: string): object => ({ id, uses: 'act' });
const note = (id: string): object => ({ id, uses: 'note' });
const nap = (id: string, seconds: number): object => ({ id, uses: 'nap', with: seconds });

const everyTenSeconds: Partial<TaskDefinition> = {
  schedule_kind: 'cron',
  schedule_expr: '*/10 * * * * *',
  max_runs: 3,
  misfire_policy: 'all',
  misfire_grace_seconds: 600,
  payload: { pipeline: [act('only')] },
};
const due = [10, 20, 30];

/** Takes longer than the time between two fires. */
const long = { payload: { pipeline: [act('first'), nap('long', 14), act('last')] } };

export const kinds: readonly Kind[] = [
  { name: 'cron', tasks: { t: everyTenSeconds }, due, ends: succeeds },
  {
    name: 'at once',
    tasks: { t: { ...everyTenSeconds, payload: { pipeline: [note('only')] } } },
    due,
    ends: succeeds,
  },
  {
    name: 'overlap: skip',
    tasks: { t: { ...everyTenSeconds, ...long, overlap_policy: 'skip' } },
    due,
    exclusive: true,
    // The first run has no earlier run to overlap with.
    ends: (at) => (at === 10 ? ['succeeded'] : ['succeeded', 'skipped']),
  },
  {
    name: 'overlap: queue',
    tasks: { t: { ...everyTenSeconds, ...long, overlap_policy: 'queue' } },
    due,
    exclusive: true,
    // One run may run and one may wait, so only the third can be skipped.
    ends: (at) => (at === 30 ? ['succeeded', 'skipped'] : ['succeeded']),
  },
  {
    name: 'overlap: cancel_running',
    tasks: { t: { ...everyTenSeconds, ...long, overlap_policy: 'cancel_running' } },
    due,
    exclusive: true,
    // No later run cancels the last one.
    ends: (at) => (at === 30 ? ['succeeded'] : ['succeeded', 'canceled']),
  },
  {
    name: 'dedupe key',
    tasks: { t: { ...everyTenSeconds, dedupe_key: 'once in 15 s', dedupe_window_seconds: 15 } },
    due,
    restsFor: 20_000,
    // Counted by nominal times: 20 is 10 s after 10, and 30 is 20 s after it.
    ends: (at) => (at === 20 ? ['skipped'] : ['succeeded']),
  },
  {
    name: 'concurrency key',
    tasks: Object.fromEntries(
      ['t', 'u'].map((id) => [
        id,
        {
          ...everyTenSeconds,
          concurrency_key: 'printer',
          payload: { pipeline: [nap('print', 3)] },
        },
      ]),
    ),
    due,
    exclusive: true,
    ends: succeeds,
  },
  {
    name: 'once',
    tasks: {
      t: {
        ...everyTenSeconds,
        max_runs: null,
        schedule_kind: 'once',
        schedule_expr: '2026-03-02T00:00:10Z',
      },
    },
    due: [10],
    ends: succeeds,
  },
  {
    name: 'rrule',
    tasks: {
      t: {
        ...everyTenSeconds,
        max_runs: null,
        schedule_kind: 'rrule',
        schedule_expr: 'DTSTART:20260302T000100Z\nRRULE:FREQ=MINUTELY;COUNT=2',
      },
    },
    due: [60, 120],
    ends: succeeds,
  },
  {
    name: 'event',
    tasks: {
      t: {
        ...everyTenSeconds,
        max_runs: null,
        schedule_kind: 'event',
        schedule_expr: 'orders.*',
      },
    },
    due: [10, 20],
    published: true,
    ends: succeeds,
  },
  {
    name: 'event with a large payload',
    tasks: Object.fromEntries(
      ['t', 'u'].map((id) => [
        id,
        {
          ...everyTenSeconds,
          max_runs: null,
          schedule_kind: 'event',
          schedule_expr: 'orders.*',
          // A run without the payload of its event fails.
          payload: {
            pipeline: [
              {
                ...act('only'),
                with: "${run.trigger == 'event' && length(event.payload.padding)}",
              },
            ],
          },
        },
      ]),
    ),
    due: [10, 20],
    published: true,
    padding: 'x'.repeat(2_000),
    ends: succeeds,
  },
  {
    name: 'retrying',
    tasks: {
      t: {
        ...everyTenSeconds,
        max_runs: 1,
        max_retries: 2,
        backoff_strategy: 'fixed',
        retry_delay_seconds: 2,
        payload: {
          pipeline: [
            act('before'),
            { id: 'flaky', uses: 'flaky', with: '${run.attempt}' },
            act('after'),
          ],
        },
      },
    },
    due: [10],
    ends: succeeds,
  },
  {
    name: 'several steps',
    tasks: {
      t: {
        ...everyTenSeconds,
        max_runs: 1,
        payload: { pipeline: [act('a'), nap('b', 1), act('c'), act('d')] },
      },
    },
    due: [10],
    ends: succeeds,
  },
  {
    name: 'for_each',
    tasks: {
      t: {
        ...everyTenSeconds,
        max_runs: 1,
        payload: { pipeline: [{ ...nap('each', 1), for_each: [1, 2, 3] }, act('last')] },
      },
    },
    due: [10],
    ends: succeeds,
  },
];
