import { expect } from 'chai';
import { streams } from '../../../../domain/streams.ts';
import { scheduledRunId } from '../../../../domain/ids.ts';
import { request } from '../../../projections/recorded.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

const span = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T05:00:00Z' };

describe('backfills over HTTP', () => {
  const api = useRunningApi();
  const task = async ({ id, client }: SignedIn = api().admin, extra: object = {}) => {
    const created = await client.post('/tasks', { ...plainTask(id), ...extra });
    expect(created.status, created.text).to.equal(201);
    return { id: created.textAt('id'), client };
  };

  it('are accepted, listed and shown with their progress', async () => {
    const { id, client } = await task();
    const answer = await client.post(`/tasks/${id}/backfill`, { ...span, concurrency: 2 });
    expect(answer.status, answer.text).to.equal(202);
    const backfill = answer.textAt('details.backfill_id');
    expect(answer.header('Location')).to.equal(`/backfills/${backfill}`);
    const asked = {
      task_id: id,
      task_revision: 0,
      from: '2026-01-01T00:00:00.000Z',
      to: '2026-01-01T05:00:00.000Z',
      only: 'missing',
      concurrency: 2,
      total: 6,
      params: null,
      requested: 0,
      state: 'running',
    };
    expect(answer.at('details')).to.deep.equal({ backfill_id: backfill, ...asked });
    const shown = await client.get(`/backfills/${backfill}`);
    expect(shown.json).to.include({ ...asked, id: backfill, requested_by: api().admin.id });
    expect(shown.json).to.include({ existing: 0, unfinished: 0, up_to: null, finished_at: null });
    await api().append(streams.backfill(backfill), [
      {
        type: 'BackfillAdvanced',
        data: {
          up_to: '2026-01-01T03:00:00.000Z',
          requested: 3,
          existing: 1,
          unfinished: ['2026-01-01T03:00:00.000Z'],
          outcomes: { succeeded: 1, failed: 1, canceled: 0, skipped: 0 },
        },
      },
    ]);
    const after = await api().store.head();
    const listed = await client.get(`/tasks/${id}/backfills?after=${after}`);
    expect(listed.at('total')).to.equal(1);
    expect(listed.at('items.0')).to.include({
      id: backfill,
      requested: 3,
      existing: 1,
      unfinished: 1,
      succeeded: 1,
      failed: 1,
      up_to: '2026-01-01T03:00:00.000Z',
    });
  });

  it('only report their effect in a dry run', async () => {
    const { id, client } = await task(api().admin, { timezone: 'Europe/Berlin' });
    const nominal = '2026-01-01T01:00:00.000Z';
    const run = streams.run(scheduledRunId(id, nominal));
    await api().append(run, [{ type: 'RunRequested', data: request({ task_id: id }) }]);
    const local = { from: '2026-01-01T01:00:00', to: '2026-01-01T06:00:00' };
    const before = await api().store.head();
    const dry = await client.post(`/tasks/${id}/backfill`, { ...local, dry_run: true });
    expect(dry.status, dry.text).to.equal(200);
    expect(dry.at('details')).to.deep.include({ total: 6, existing: 1, to_request: 5 });
    expect(dry.at('details.first')).to.deep.equal(
      [0, 2, 3, 4, 5].map((hour) => `2026-01-01T0${hour}:00:00.000Z`),
    );
    const all = { ...local, dry_run: true, only: 'all' };
    const whole = await client.post(`/tasks/${id}/backfill`, all);
    expect(whole.at('details')).to.deep.include({ existing: 0, to_request: 6 });
    expect(await api().store.head()).to.equal(before);
    expect((await client.get(`/tasks/${id}/backfills`)).at('total')).to.equal(0);
  });

  it('are created once for one Idempotency-Key', async () => {
    const { id, client } = await task();
    const headers = { 'idempotency-key': 'once' };
    const send = () => client.send('POST', `/tasks/${id}/backfill`, { body: span, headers });
    const first = await send();
    const second = await send();
    expect(second.status).to.equal(202);
    expect(second.header('Idempotent-Replayed')).to.equal('true');
    expect(second.json).to.deep.equal(first.json);
    expect((await client.get(`/tasks/${id}/backfills`)).at('total')).to.equal(1);
  });

  it('of missing fires are refused while another runs in the span', async () => {
    const { id, client } = await task();
    const first = await client.post(`/tasks/${id}/backfill`, span);
    const refused = await client.post(`/tasks/${id}/backfill`, span);
    expect(refused.status).to.equal(409);
    const backfill = first.textAt('details.backfill_id');
    expect(refused.at('details')).to.deep.equal({ backfill_id: backfill, state: 'running' });
    const beside = { from: '2026-01-02T00:00:00Z', to: '2026-01-02T01:00:00Z' };
    expect((await client.post(`/tasks/${id}/backfill`, beside)).status).to.equal(202);
    const all = await client.post(`/tasks/${id}/backfill`, { ...span, only: 'all' });
    expect(all.status).to.equal(202);
    for (const each of [first, all]) {
      await client.post(`/backfills/${each.textAt('details.backfill_id')}/cancel`);
    }
    const again = await client.post(`/tasks/${id}/backfill`, span);
    expect(again.status, again.text).to.equal(202);
    const [begun] = await api().store.readStream(
      streams.backfill(again.textAt('details.backfill_id')),
    );
    expect(begun?.type === 'BackfillRequested' && begun.data.earlier).to.have.lengthOf(2);
  });

  it('are canceled once, and never after they are completed', async () => {
    const { id, client } = await task();
    const first = await client.post(`/tasks/${id}/backfill`, span);
    const backfill = first.textAt('details.backfill_id');
    const details = {
      backfill_id: backfill,
      task_id: id,
      new_state: 'canceled',
      requested: 0,
      total: 6,
    };
    const canceled = await client.post(`/backfills/${backfill}/cancel`);
    expect(canceled.at('details')).to.deep.equal({ ...details, old_state: 'running' });
    const again = await client.post(`/backfills/${backfill}/cancel`);
    expect(again.at('details')).to.deep.equal({ ...details, old_state: 'canceled' });
    const shown = await client.get(`/backfills/${backfill}`);
    expect(shown.json).to.include({ state: 'canceled', canceled_by: 'request' });
    const second = await client.post(`/tasks/${id}/backfill`, span);
    const completed = second.textAt('details.backfill_id');
    await api().append(streams.backfill(completed), [{ type: 'BackfillCompleted', data: {} }]);
    expect((await client.post(`/backfills/${completed}/cancel`)).status).to.equal(409);
  });

  it('require a task with a schedule that is not canceled', async () => {
    const event = await task(api().admin, { schedule_kind: 'event', schedule_expr: 'a.b' });
    expect((await event.client.post(`/tasks/${event.id}/backfill`, span)).status).to.equal(409);
    const { id, client } = await task();
    await client.post(`/tasks/${id}/cancel`);
    const refused = await client.post(`/tasks/${id}/backfill`, span);
    expect(refused.status).to.equal(409);
    expect(refused.at('details')).to.deep.equal({ status: 'canceled' });
  });

  it("are limited to the caller's own tasks", async () => {
    const owner = await api().signIn(['tasks:write', 'tasks:read']);
    const { id } = await task(owner);
    const other = await api().signIn(['tasks:write', 'tasks:read']);
    expect((await other.client.post(`/tasks/${id}/backfill`, span)).status).to.equal(403);
    const mine = await owner.client.post(`/tasks/${id}/backfill`, span);
    expect(mine.status, mine.text).to.equal(202);
    const path = `/backfills/${mine.textAt('details.backfill_id')}`;
    expect((await other.client.post(`${path}/cancel`)).status).to.equal(403);
    expect((await other.client.get(path)).status).to.equal(200);
    expect((await api().admin.client.post(`${path}/cancel`)).status).to.equal(200);
  });
});
