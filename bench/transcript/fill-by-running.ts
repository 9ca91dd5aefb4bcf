import { setTimeout as pause } from 'node:timers/promises';
import { makeAnalysed } from '../../test/process/running/analysis-store.ts';
import type { ApiClient } from '../../test/support/api-client.ts';

/** Tasks that each published order triggers, and the most runs that may wait before the next order. */
const TASKS_PER_ORDER = 100;
const MAX_WAITING_RUNS = 20_000;
/** Publications under way at a time. */
const PUBLISHERS = 4;
/** Each run has three events: requested, started, ended. */
const EVENTS_PER_ORDER = TASKS_PER_ORDER * 3;
/** Orders between two lines of progress. */
const ORDERS_PER_LINE = 500;
/** One in this many orders is late, and its runs of every tenth task fail. */
const ORDERS_PER_LATE_ONE = 50;
const TASKS_PER_CHECK = 10;

/**
 * Lets a service write its log through its interface: the tasks of the analysis, then tasks that run for each published
 * order, until the log has at least the given number of events.
 * @param admin a client with the scope `admin`
 */
export async function fillByRunning(
  admin: ApiClient,
  adminId: string,
  events: number,
): Promise<void> {
  await makeAnalysed(admin, adminId);
  for (let index = 0; index < TASKS_PER_ORDER; index += 1) {
    const tooLate = {
      id: 'check',
      uses: 'fail',
      if: 'event.payload.late',
      with: { message: 'the order came too late', retryable: false },
    };
    const steps = index % TASKS_PER_CHECK === 0 ? [tooLate] : [];
    await post(admin, '/tasks', {
      title: `Orders ${index + 1}`,
      description: 'books an order',
      created_by: adminId,
      schedule_kind: 'event',
      schedule_expr: 'orders.*',
      tags: ['orders'],
      payload: {
        pipeline: [...steps, { id: 'book', uses: 'echo', with: '${event.payload.order}' }],
      },
    });
  }
  let order = 0;
  let done = false;
  const publisher = async (): Promise<void> => {
    while (!done) {
      order += 1;
      const payload = { order, late: order % ORDERS_PER_LATE_ONE === 0 };
      await post(admin, '/events', { topic: 'orders.placed', payload, source_agent_id: adminId });
      if (order * EVENTS_PER_ORDER >= events) done = true;
      if (payload.order % ORDERS_PER_LINE === 0) {
        console.log(`filling: ${(payload.order * EVENTS_PER_ORDER).toLocaleString('en')} events`);
      }
      while ((await waiting(admin)) > MAX_WAITING_RUNS) await pause(50);
    }
  };
  await Promise.all(Array.from({ length: PUBLISHERS }, publisher));
  while ((await waiting(admin)) > 0) await pause(50);
}

async function post(admin: ApiClient, path: string, body: object): Promise<void> {
  const { status, text } = await admin.post(path, body);
  if (status >= 300) throw new Error(`POST ${path}: ${status} ${text}`);
}

/** Runs that no worker has taken yet. */
async function waiting(admin: ApiClient): Promise<number> {
  const { text } = await admin.get('/ext/observability/metrics');
  return Number(/^runs_waiting (\d+)/m.exec(text)?.[1] ?? 0);
}
