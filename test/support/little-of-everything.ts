import type { ApiClient, ReceivedResponse } from './api-client.ts';

/** Ids and names of what {@link fillWithEverything} has made. */
export interface Everything {
  /** A task that failed. */
  readonly task: string;
  /** Its failed run. */
  readonly failed: string;
  /** A run that waits for an approval. */
  readonly waiting: string;
  readonly agent: string;
  readonly secret: string;
  readonly namespace: string;
}

/**
 * Adds a little of everything to a service: tasks (one paused), runs that failed, succeeded, and wait, an approval, an
 * event, an agent with a key, a secret, a namespace and a worker with a job.
 * @param client of an admin
 * @param owner the admin's id
 */
export async function fillWithEverything(client: ApiClient, owner: string): Promise<Everything> {
  const task = async (title: string, pipeline: readonly object[], fields: object = {}) => {
    const made = await client.post('/tasks', {
      ...{ title, description: title, created_by: owner, schedule_kind: 'event', max_retries: 0 },
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
  done(await client.post('/events', event));
  const reader = { name: 'dashboards', scopes: ['tasks:read', 'runs:read'] };
  const agent = done(await client.post('/agents', reader)).textAt('id');
  done(await client.post(`/agents/${agent}/keys`, { name: 'wall-screen' }));
  const secret = 'PRINTER_TOKEN';
  done(await client.put(`/secrets/${secret}`, { value: 'x', allow_hosts: ['printer.example'] }));
  const namespace = 'branch-office';
  done(await client.post('/namespaces', { name: namespace, description: 'Of the branch office' }));
  const tools = [{ name: 'letters.send', description: 'Sends letters', schema: {} }];
  const labels = { region: 'eu' };
  const worker = await client.post('/workers', { name: 'post-office', tools, slots: 3, labels });
  const sending = { schedule_expr: 'letters.written' };
  await run(await task('Send the letters', [{ id: 'send', uses: 'letters.send' }], sending));
  done(await client.post(`/workers/${done(worker).textAt('worker_id')}/jobs?wait=20`));
  return { task: failing, failed, waiting, agent, secret, namespace };
}

function done(response: ReceivedResponse): ReceivedResponse {
  if (response.status < 300) return response;
  throw new Error(`refused: ${response.status} ${response.text}`);
}
