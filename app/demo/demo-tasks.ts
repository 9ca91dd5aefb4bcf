import type { CreateTask } from '../../api/client/client.ts';

/** The tasks of the demo: one of each kind. */
const demoKinds = ['cron', 'rrule', 'once', 'event'] as const;
export type DemoKind = (typeof demoKinds)[number];

/** A task to create, and how many of its runs the demo expects. */
export interface DemoTask {
  readonly kind: DemoKind;
  readonly runs: number;
  readonly body: CreateTask;
}

/** The topic of the published event; the event task's pattern matches it. */
export const demoTopic = 'orders.created';
/** Payload of the published event. */
export const demoOrder = { order: 4711, total: 129.5 };

/** Milliseconds from creation to the fire of the `once` task. */
const ONCE_DELAY = 5000;

/**
 * The bodies of the four `POST /tasks`. Repeating tasks end by `max_runs`.
 *
 * @param owner id of the agent that creates them
 * @param receiver address of the HTTP server that the `once` task calls
 * @param now milliseconds since 1970
 */
export function demoTasks(owner: string, receiver: string, now: number): readonly DemoTask[] {
  const everyOtherSecond = Array.from({ length: 30 }, (_, index) => 2 * index).join(',');
  return [
    {
      kind: 'cron',
      runs: 3,
      body: {
        title: 'Tick',
        description: 'Each second, three times',
        schedule_kind: 'cron',
        schedule_expr: '* * * * * *',
        max_runs: 3,
        created_by: owner,
        payload: {
          pipeline: [{ id: 'tick', uses: 'echo', with: { due: '${run.scheduled_for}' } }],
        },
      },
    },
    {
      kind: 'rrule',
      runs: 2,
      body: {
        title: 'Report',
        description: 'Every other second, two times; sums numbers of its parameters',
        schedule_kind: 'rrule',
        schedule_expr: `FREQ=MINUTELY;BYSECOND=${everyOtherSecond}`,
        timezone: 'Europe/Berlin',
        max_runs: 2,
        created_by: owner,
        payload: {
          params: { sales: [{ amount: 20 }, { amount: 22 }] },
          pipeline: [
            {
              id: 'sum',
              uses: 'transform',
              with: { expression: 'sum([].amount)', input: '${params.sales}' },
              save_as: 'total',
            },
            { uses: 'log', with: { message: 'sold for ${steps.total}' } },
          ],
        },
      },
    },
    {
      kind: 'once',
      runs: 1,
      body: {
        title: 'Call',
        description: 'Once, in five seconds; calls an HTTP server that is busy at first',
        schedule_kind: 'once',
        schedule_expr: new Date(now + ONCE_DELAY).toISOString(),
        backoff_strategy: 'fixed',
        retry_delay_seconds: 0.5,
        created_by: owner,
        payload: {
          pipeline: [
            { id: 'prepare', uses: 'echo', with: { hello: 'from a task' } },
            {
              id: 'call',
              uses: 'http.request',
              with: { method: 'POST', url: `${receiver}/hook`, body: '${steps.prepare}' },
            },
          ],
        },
      },
    },
    {
      kind: 'event',
      runs: 1,
      body: {
        title: 'Welcome',
        description: 'On each order',
        schedule_kind: 'event',
        schedule_expr: 'orders.*',
        created_by: owner,
        payload: {
          pipeline: [
            {
              id: 'order',
              uses: 'echo',
              with: { order: '${event.payload.order}', event: '${event.id}' },
            },
          ],
        },
      },
    },
  ];
}
