import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/signals.ts';

const DAY = 86_400_000;

/** The data that the page's questions need. */
export interface Analysed {
  /** The task that failed for a while. */
  readonly report: string;
}

/**
 * Makes a service run what the page for analysts examines. A nightly report failed for some days
 * after a change and was slower afterwards. A weekly task is healthy, and another task fires each
 * second. An agent was refused actions. The past comes from backfills: the runs are real, and run
 * now.
 * @param admin a client with the scope `admin`
 */
export async function makeAnalysed(admin: ApiClient, adminId: string): Promise<Analysed> {
  const create = async (fields: object): Promise<string> => {
    const plain = { description: 'for analysts', created_by: adminId, max_retries: 1 };
    const retry = { backoff_strategy: 'fixed', retry_delay_seconds: 0.01 };
    const answer = await admin.post('/tasks', { ...plain, ...retry, ...fields });
    expect(answer.status, answer.text).to.equal(201);
    return answer.textAt('id');
  };
  const change = async (id: string, fields: object, reason: string): Promise<void> => {
    const answer = await admin.put(`/tasks/${id}`, fields, { headers: { 'x-reason': reason } });
    expect(answer.status, answer.text).to.equal(200);
  };
  const now = Date.now();
  const ago = (days: number): string => toIso(now - days * DAY);
  const backfill = async (id: string, from: number, to: number): Promise<void> => {
    const body = { from: ago(from), to: ago(to), concurrency: 8 };
    const answer = await admin.post(`/tasks/${id}/backfill`, body);
    expect(answer.status, answer.text).to.equal(202);
    const backfills = `/backfills/${answer.textAt('details.backfill_id')}`;
    await eventually(
      async () => {
        expect((await admin.get(backfills)).at('state')).to.equal('completed');
        const open = await admin.get(`/runs?task_id=${id}&limit=200`);
        const states = (open.at('items') as { state: string }[]).map(({ state }) => state);
        expect(states).to.not.include.members(['queued']);
        expect(states.filter((state) => state === 'running' || state === 'retrying')).to.be.empty;
      },
      { limitMs: 30_000 },
    );
  };

  const ticking = await create({
    title: 'Heartbeat',
    schedule_kind: 'cron',
    schedule_expr: '* * * * * *',
    payload: { pipeline: [{ id: 'beat', uses: 'echo', with: 'alive' }] },
  });
  const steps = (seconds: number) => ({
    pipeline: [
      { id: 'collect', uses: 'sleep', with: { seconds } },
      { id: 'write', uses: 'echo', with: 'written' },
    ],
  });
  const report = await create({
    title: 'Nightly report',
    schedule_kind: 'cron',
    schedule_expr: '0 3 * * *',
    payload: steps(0.03),
  });
  const invoices = await create({
    title: 'Invoices',
    schedule_kind: 'cron',
    schedule_expr: '0 6 * * MON',
    payload: { pipeline: [{ id: 'send', uses: 'sleep', with: { seconds: 0.01 } }] },
  });
  await backfill(invoices, 29, 1);
  await backfill(report, 29, 15);
  const moved = 'connect ECONNREFUSED 10.0.0.7:5432';
  const failing = { pipeline: [{ id: 'collect', uses: 'fail', with: { message: moved } }] };
  await change(report, { payload: failing }, 'the reports database has moved');
  await backfill(report, 15, 8);
  await change(report, { payload: steps(0.08) }, 'the address was wrong; a replica is asked');
  await backfill(report, 8, 1);

  await eventually(async () => {
    const run = await admin.get(`/runs?task_id=${ticking}&state=succeeded&limit=1`);
    expect(run.at('items')).to.have.length(1);
  });
  await admin.post(`/tasks/${ticking}/pause`, undefined, { headers: { 'x-reason': 'too noisy' } });
  const paused = Date.now();
  const made = await admin.post('/agents', { name: 'intern', scopes: ['tasks:read'] });
  const id = made.textAt('id');
  const secret = (await admin.post(`/agents/${id}/credentials`)).textAt('agent_secret');
  const token = await admin
    .as(null)
    .post('/agents/auth/token', { agent_id: id, agent_secret: secret });
  const intern = admin.as(token.textAt('access_token'));
  for (const verb of ['pause', 'run_now']) await intern.post(`/tasks/${report}/${verb}`);
  // Ensures that fires are due in the meantime.
  await eventually(() => Date.now() - paused > 2_200, { limitMs: 10_000 });
  await admin.post(`/tasks/${ticking}/resume?missed=skip`);
  await eventually(async () => {
    const { json } = await admin.get('/audit?type=CommandRefused');
    expect((json['items'] as unknown[]).length).to.be.greaterThan(1);
  });
  await admin.post(`/tasks/${ticking}/pause`);
  return { report };
}
