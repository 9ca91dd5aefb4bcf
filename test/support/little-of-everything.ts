import type { ApiClient, ReceivedResponse } from './api-client.ts';
import { found } from './signals.ts';

/** Milliseconds. */
const KEY_LIFETIME = 90 * 86_400_000;

/** Ids and names of the things that {@link fillWithEverything} has created. */
export interface Everything {
  /** A task that failed. */
  readonly task: string;
  /** Its failed run. */
  readonly failed: string;
  /** A run that waits for an approval. */
  readonly waiting: string;
  /** The approval. */
  readonly approval: string;
  /** A published event. */
  readonly event: string;
  readonly agent: string;
  readonly secret: string;
  readonly namespace: string;
}

/**
 * Adds a little of everything to a service: tasks (one paused), runs that failed, succeeded or wait, an approval, an
 * event, an agent with a key, a secret, a namespace and a worker with a job.
 * @param client of an admin
 * @param owner the admin's id
 */
export async function fillWithEverything(client: ApiClient, owner: string): Promise<Everything> {
  const task = async (title: string, pipeline: readonly object[], fields: object = {}) => {
    const made = await client.post('/tasks', {
      title,
      description: title,
      created_by: owner,
      schedule_kind: 'event',
      max_retries: 0,
      payload: { pipeline },
      ...fields,
    });
    return done(made).textAt('id');
  };
  const run = async (id: string, query = ''): Promise<string> =>
    done(await client.post(`/tasks/${id}/run_now${query}`)).textAt('details.run_id');

  const daily = { schedule_kind: 'cron', schedule_expr: '15 5 * * *', timezone: 'Europe/Berlin' };
  const failing = await task(
    'Print the labels',
    [
      { id: 'collect', uses: 'echo', with: { labels: 240 } },
      {
        id: 'print',
        uses: 'fail',
        with: { message: 'no paper in the printer', retryable: false },
      },
    ],
    { ...daily, tags: ['warehouse'] },
  );
  const failed = await run(failing, '?wait=30');
  const paused = await task('Count the stock', [{ id: 'count', uses: 'echo' }], daily);
  const headers = { 'x-reason': 'stocktaking' };
  done(await client.post(`/tasks/${paused}/pause`, undefined, { headers }));
  const question = { message: 'Pay 42 suppliers today?' };
  const chief = { id: 'chief', uses: 'approval', with: question };
  const asking = await task('Pay the suppliers', [chief], { schedule_expr: 'suppliers.due' });
  const waiting = await run(asking);
  await task('Pack the parcels', [{ id: 'pack', uses: 'echo' }], { schedule_expr: 'orders.*' });
  const event = { topic: 'orders.created', source_agent_id: owner, payload: { order: 4711 } };
  const published = done(await client.post('/events', event)).textAt('details.event_id');
  const reader = { name: 'dashboards', scopes: ['tasks:read', 'runs:read'] };
  const agent = done(await client.post('/agents', reader)).textAt('id');
  const expires_at = new Date(Date.now() + KEY_LIFETIME).toISOString();
  done(await client.post(`/agents/${agent}/keys`, { name: 'wall-screen', expires_at }));
  const secret = 'PRINTER_TOKEN';
  const set = { value: 'x', allow_hosts: ['printer.example'], expires_at: inDays(5) };
  done(await client.put(`/secrets/${secret}`, set));
  const namespace = 'branch-office';
  done(await client.post('/namespaces', { name: namespace, description: 'Of the branch office' }));
  const tools = [{ name: 'letters.send', description: 'Sends letters', schema: {} }];
  const labels = { region: 'eu' };
  const worker = await client.post('/workers', { name: 'post-office', tools, slots: 3, labels });
  const sending = { schedule_expr: 'letters.written' };
  // Longer than any test, because nobody completes the job.
  const send = { id: 'send', uses: 'letters.send', timeout_seconds: 900 };
  await run(await task('Send the letters', [send], sending));
  done(await client.post(`/workers/${done(worker).textAt('worker_id')}/jobs?wait=20`));
  const approval = await found(async () => {
    const id = (await client.get(`/approvals?run_id=${waiting}`)).at('items.0.id');
    return typeof id === 'string' ? id : null;
  });
  return { task: failing, failed, waiting, approval, event: published, agent, secret, namespace };
}

const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();

/** The response. @throws Error if the request was refused */
export function done(response: ReceivedResponse): ReceivedResponse {
  if (response.status < 300) return response;
  throw new Error(`refused: ${response.status} ${response.text}`);
}
