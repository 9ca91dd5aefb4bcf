import type { SecondsTask } from '../../support/expected-fires.ts';
import type { Cluster } from '../cluster.ts';

/** A task of the kill test, with its request and its expected behaviour. */
export interface PlannedTask {
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** When the task is due, if it is due at certain seconds. */
  readonly seconds?: Omit<SecondsTask, 'createdAt'>;
  /** The attempt that succeeds. */
  readonly attempts: number;
  /** What the runs share. It limits which of them run, or run concurrently. */
  readonly shares?: Sharing;
}

/**
 * A concurrency key of several tasks, the overlap policy of one task, or a dedupe key that is used at most once in a
 * number of seconds.
 */
export type Sharing =
  | { readonly kind: 'concurrency'; readonly key: string }
  | { readonly kind: 'overlap'; readonly policy: 'skip' | 'queue' | 'cancel_running' }
  | { readonly kind: 'dedupe'; readonly key: string; readonly windowSeconds: number };

/** A created task. */
export interface CreatedTask extends PlannedTask {
  readonly id: string;
  readonly createdAt: number;
}

const echo = { pipeline: [{ uses: 'echo', with: { said: '${run.id}' } }] };

/** A task that is due every `every` seconds. */
export function everySecond(
  misfire: SecondsTask['misfire'],
  graceSeconds: number,
  more: Partial<PlannedTask> = {},
  every = 1,
): PlannedTask {
  return {
    name: `every ${every} s, ${misfire}, ${graceSeconds} s`,
    attempts: 1,
    seconds: { misfire, graceSeconds, isDue: (second) => second % every === 0 },
    ...more,
    body: {
      schedule_kind: 'cron',
      schedule_expr: `${every === 1 ? '*' : `*/${every}`} * * * * *`,
      misfire_policy: misfire,
      misfire_grace_seconds: graceSeconds,
      payload: echo,
      ...more.body,
    },
  };
}

/** A call to the test's server, which counts it. */
const call = (id: string, url: string): object => ({
  id,
  uses: 'http.request',
  with: { method: 'POST', url, body: { run: '${run.id}' } },
});

/**
 * A manual task with one step that waits for its response.
 * @param url of a server that delays responses
 */
export function held(url: string): PlannedTask {
  return {
    name: 'held',
    attempts: 1,
    body: {
      schedule_kind: 'cron',
      schedule_expr: '0 0 0 29 2 *',
      payload: { pipeline: [call('held', url)] },
    },
  };
}

/** Every kind of task in the kill test. @param url of the server that steps call */
export function plannedTasks(url: string): readonly PlannedTask[] {
  const steps = {
    pipeline: [
      call('first', url),
      { id: 'pause', uses: 'sleep', with: { seconds: 0.3 } },
      call('second', url),
      { id: 'last', uses: 'echo', with: { seen: '${steps.second.body.count}' } },
    ],
  };
  const failing = {
    pipeline: [
      call('before', url),
      { id: 'fails', uses: 'fail', if: 'run.attempt < `2`', with: { message: 'the first time' } },
      call('after', url),
    ],
  };
  const retry = { retry_delay_seconds: 0.5, backoff_strategy: 'fixed' };
  return [
    everySecond('all', 1),
    everySecond('latest', 1),
    everySecond('latest', 0),
    everySecond('skip', 1),
    everySecond('latest', 60, {}, 7),
    everySecond('all', 60, { name: 'several steps', body: { payload: steps } }),
    everySecond(
      'all',
      60,
      { name: 'fails once', attempts: 2, body: { payload: failing, ...retry } },
      2,
    ),
    ...sharingTasks(url),
    {
      name: 'orders',
      attempts: 1,
      body: { schedule_kind: 'event', schedule_expr: 'orders.*', payload: echo },
    },
    {
      name: 'all events',
      attempts: 1,
      body: { schedule_kind: 'event', schedule_expr: '#', payload: steps },
    },
    {
      name: 'by hand',
      attempts: 1,
      body: { schedule_kind: 'cron', schedule_expr: '0 0 0 29 2 *', payload: echo },
    },
  ];
}

/** Tasks whose runs yield to others or wait for them. */
function sharingTasks(url: string): readonly PlannedTask[] {
  const taking = (seconds: number): object => ({
    pipeline: [
      call('first', url),
      { id: 'pause', uses: 'sleep', with: { seconds } },
      call('last', url),
    ],
  });
  const overlapping = (['skip', 'queue', 'cancel_running'] as const).map((policy) =>
    everySecond(
      'all',
      60,
      {
        name: `overlap: ${policy}`,
        shares: { kind: 'overlap', policy },
        // Sometimes the next one is due before it ends.
        body: { payload: taking(1.9), overlap_policy: policy },
      },
      2,
    ),
  );
  const printing = ['one', 'two'].map((name) =>
    everySecond(
      'all',
      60,
      {
        name: `printer ${name}`,
        shares: { kind: 'concurrency', key: 'printer' },
        body: { payload: taking(0.2), concurrency_key: 'printer' },
      },
      3,
    ),
  );
  const key = 'once in 3 s';
  const deduped = everySecond('all', 60, {
    name: 'dedupe',
    shares: { kind: 'dedupe', key, windowSeconds: 3 },
    body: { dedupe_key: key, dedupe_window_seconds: 3 },
  });
  return [...overlapping, ...printing, deduped];
}

/** Creates the tasks over HTTP. */
export async function createTasks(
  cluster: Cluster,
  planned: readonly PlannedTask[],
): Promise<CreatedTask[]> {
  const created: CreatedTask[] = [];
  for (const task of planned) {
    const { status, json, text } = await cluster.client().post('/tasks', {
      title: task.name,
      description: 'of the kill test',
      created_by: cluster.credentials?.agent_id,
      ...task.body,
    });
    if (status !== 201) throw new Error(`${task.name} was not created: ${status} ${text}`);
    const createdAt = Date.parse(json['created_at'] as string);
    created.push({ ...task, id: json['id'] as string, createdAt });
  }
  return created;
}
