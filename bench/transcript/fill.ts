import { setTimeout as pause } from 'node:timers/promises';
import { makeAnalysed } from '../../test/process/running/analysis-store.ts';
import type { ApiClient } from '../../test/support/api-client.ts';

/** Tasks that each published order sets off, and runs that may wait before more is published. */
const FLEET = 100;
const MOST_WAITING = 20_000;
/** Publications under way at a time. */
const PUBLISHERS = 4;
/** Of so many orders one comes too late, and its runs of every tenth task fail. */
const LATE = 50;
const TENTH = 10;

/** A task of which much is asked in the transcript. */
export interface Filled {
  readonly report: string;
}

/**
 * Makes a service write its log by working: what analysts ask about, and then a fleet of tasks that run for each order
 * that is published, until the log has so many events. Nothing is written past the interface.
 *
 * @param admin a client with the scope `admin`
 * @param events that the log is to have at least
 */
export async function fillByRunning(
  admin: ApiClient,
  adminId: string,
  events: number,
): Promise<Filled> {
  const { report } = await makeAnalysed(admin, adminId);
  for (let index = 0; index < FLEET; index += 1) {
    const tooLate = {
      ...{ id: 'check', uses: 'fail', if: 'event.payload.late' },
      with: { message: 'the order came too late', retryable: false },
    };
    const steps = index % TENTH === 0 ? [tooLate] : [];
    await must(admin, '/tasks', {
      ...{ title: `Orders ${index + 1}`, description: 'books an order', created_by: adminId },
      ...{ schedule_kind: 'event', schedule_expr: 'orders.*', tags: ['orders'] },
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
      const payload = { order, late: order % LATE === 0 };
      await must(admin, '/events', {
        ...{ topic: 'orders.placed', payload, source_agent_id: adminId },
      });
      // Each is three events: requested, started, ended.
      if (order * FLEET * 3 >= events) done = true;
      while ((await waiting(admin)) > MOST_WAITING) await pause(50);
    }
  };
  await Promise.all(Array.from({ length: PUBLISHERS }, publisher));
  while ((await waiting(admin)) > 0) await pause(50);
  return { report };
}

async function must(admin: ApiClient, path: string, body: object): Promise<void> {
  const { status, text } = await admin.post(path, body);
  if (status >= 300) throw new Error(`POST ${path}: ${status} ${text}`);
}

/** Runs that are requested and that nobody has taken. */
async function waiting(admin: ApiClient): Promise<number> {
  const { text } = await admin.get('/ext/observability/metrics');
  return Number(/^runs_waiting (\d+)/m.exec(text)?.[1] ?? 0);
}
