import { expect } from 'chai';
import { streams } from '../../../../domain/streams.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

describe('commands on a task over HTTP', () => {
  const api = useRunningApi();
  const task = async ({ id, client }: SignedIn = api().admin, extra: object = {}) => {
    const created = await client.post('/tasks', { ...plainTask(id), ...extra });
    expect(created.status, created.text).to.equal(201);
    return { id: created.textAt('id'), created, client };
  };

  it('request a run now, even of a paused task, but not of a canceled one', async () => {
    const { id, client } = await task();
    const run = await client.post(`/tasks/${id}/run_now`);
    expect(run.status, run.text).to.equal(200);
    expect(run.at('success')).to.equal(true);
    expect(run.at('details.task_id')).to.equal(id);
    const shown = await client.get(`/runs/${run.textAt('details.run_id')}`);
    expect(shown.json).to.include({
      state: 'queued',
      trigger: 'manual',
      task_id: id,
      success: null,
    });
    await client.post(`/tasks/${id}/pause`);
    expect((await client.post(`/tasks/${id}/run_now`, {})).status).to.equal(200);
    await client.post(`/tasks/${id}/cancel`);
    expect((await client.post(`/tasks/${id}/run_now`)).status).to.equal(409);
  });

  it('pin a run to the definition from the change right before it', async () => {
    const { id, client } = await task();
    await client.post(`/tasks/${id}/run_now`);
    await client.put(`/tasks/${id}`, { priority: 2 });
    const run = await client.post(`/tasks/${id}/run_now`);
    const shown = await client.get(`/runs/${run.textAt('details.run_id')}`);
    expect(shown.json).to.include({ priority: 2, task_revision: 1 });
  });

  it('pause and resume; repeating either changes nothing', async () => {
    const { id, client } = await task();
    const details = async (what: string): Promise<unknown> => {
      const answer = await client.post(`/tasks/${id}/${what}`);
      expect(answer.status).to.equal(200);
      return answer.at('details');
    };
    const change = (old_status: string, new_status: string) => ({
      task_id: id,
      old_status,
      new_status,
    });
    expect(await details('pause')).to.deep.equal(change('active', 'paused'));
    expect((await client.get(`/tasks/${id}`)).json).to.include({
      status: 'paused',
      next_run_at: null,
      revision: 1,
    });
    expect(await details('pause')).to.deep.equal(change('paused', 'paused'));
    expect(await details('resume')).to.deep.equal(change('paused', 'active'));
    expect(await details('resume')).to.deep.equal(change('active', 'active'));
    expect((await client.get(`/tasks/${id}`)).json).to.include({ status: 'active', revision: 2 });
  });

  it('resume with a policy for the missed fires', async () => {
    const { id, client } = await task();
    await client.post(`/tasks/${id}/pause`);
    const refused = await client.post(`/tasks/${id}/resume?missed=none`);
    expect(refused.status).to.equal(400);
    expect(refused.at('details.field')).to.equal('missed');
    expect((await client.post(`/tasks/${id}/resume?missed=all`)).status).to.equal(200);
    const [, , resumed] = await api().store.readStream(streams.task(id));
    expect(resumed).to.deep.include({ type: 'TaskResumed' });
    expect(resumed?.data).to.include({ missed: 'all' });
  });

  it('cancel permanently, including queued runs', async () => {
    const { id, client } = await task();
    await client.post(`/tasks/${id}/pause`);
    const run = await client.post(`/tasks/${id}/run_now`);
    const canceled = await client.post(`/tasks/${id}/cancel`);
    const details = { task_id: id, old_status: 'paused', new_status: 'canceled', canceled_runs: 1 };
    expect(canceled.at('details')).to.deep.equal(details);
    const shown = await client.get(`/runs/${run.textAt('details.run_id')}`);
    expect(shown.at('state')).to.equal('canceled');
    const again = await client.post(`/tasks/${id}/cancel`);
    expect(again.status).to.equal(200);
    expect(again.at('details')).to.deep.equal({
      ...details,
      old_status: 'canceled',
      canceled_runs: 0,
    });
    for (const what of ['pause', 'resume', 'run_now']) {
      expect((await client.post(`/tasks/${id}/${what}`)).status, what).to.equal(409);
    }
    expect((await client.put(`/tasks/${id}`, { title: 'x' })).status).to.equal(409);
    expect((await client.post(`/tasks/${id}/snooze`, { delay_seconds: 1 })).status).to.equal(409);
  });

  it('snooze the next fire; snoozes add up, and a new schedule drops them', async () => {
    const { id, client, created } = await task();
    const nominal = Date.parse(created.textAt('next_run_at'));
    const later = (seconds: number): string => new Date(nominal + seconds * 1000).toISOString();
    const first = await client.post(`/tasks/${id}/snooze`, { delay_seconds: 60, reason: 'lunch' });
    expect(first.status, first.text).to.equal(200);
    const details = { task_id: id, delay_seconds: 60, next_run_at: later(60) };
    expect(first.at('details')).to.deep.equal(details);
    const second = await client.post(`/tasks/${id}/snooze`, { delay_seconds: 30 });
    expect(second.at('details.next_run_at')).to.equal(later(90));
    expect((await client.get(`/tasks/${id}`)).at('next_run_at')).to.equal(later(90));
    const [, snoozed] = await api().store.readStream(streams.task(id));
    expect(snoozed?.metadata.reason).to.equal('lunch');
    const renamed = await client.put(`/tasks/${id}`, { title: 'still snoozed' });
    expect(renamed.at('next_run_at')).to.equal(later(90));
    const moved = await client.put(`/tasks/${id}`, { schedule_expr: '1 * * * *' });
    expect(moved.at('next_run_at')).to.not.equal(later(90));
  });

  it('do not snooze a paused task or an event task', async () => {
    const { id, client } = await task();
    await client.post(`/tasks/${id}/pause`);
    expect((await client.post(`/tasks/${id}/snooze`, { delay_seconds: 1 })).status).to.equal(409);
    const other = await task(undefined, { schedule_kind: 'event', schedule_expr: 'a' });
    const refused = await client.post(`/tasks/${other.id}/snooze`, { delay_seconds: 1 });
    expect(refused.status).to.equal(409);
    expect(refused.at('error')).to.equal('conflict');
    expect(refused.at('message')).to.match(/^an event task can't be snoozed/);
    expect(refused.at('details')).to.deep.equal({ schedule_kind: 'event' });
  });

  it('check If-Match before the state', async () => {
    const { id, client } = await task();
    const stale = { headers: { 'if-match': '"7"' } };
    const commands: readonly (readonly [string, string, object | undefined])[] = [
      ['PUT', '', { title: 'x' }],
      ['POST', '/pause', undefined],
      ['POST', '/resume', undefined],
      ['POST', '/snooze', { delay_seconds: 5 }],
      ['POST', '/cancel', undefined],
    ];
    const all = async (status: number): Promise<void> => {
      for (const [method, path, body] of commands) {
        const answer = await client.send(method, `/tasks/${id}${path}`, {
          ...stale,
          ...(body ? { body } : {}),
        });
        expect(answer.status, `${method} ${path} ${answer.text}`).to.equal(status);
        expect(answer.at('error')).to.equal('precondition_failed');
      }
    };
    await all(412);
    await client.post(`/tasks/${id}/cancel`, undefined, { headers: { 'if-match': '"0"' } });
    await all(412);
    for (const header of ['"not-ours"', 'W/"x"']) {
      const answer = await client.put(
        `/tasks/${id}`,
        { title: 'x' },
        { headers: { 'if-match': header } },
      );
      expect(answer.status, header).to.equal(412);
    }
    const whatever = await client.put(
      `/tasks/${id}`,
      { title: 'x' },
      { headers: { 'if-match': '*' } },
    );
    expect(whatever.status).to.equal(409);
    const garbage = await client.put(
      `/tasks/${id}`,
      { title: 'x' },
      { headers: { 'if-match': 'x' } },
    );
    expect(garbage.status).to.equal(400);
    expect(garbage.at('details.field')).to.equal('If-Match');
  });

  it("are refused for another agent's task, before its revision and state are checked", async () => {
    const { id } = await task();
    const other = await api().signIn(['tasks:read', 'tasks:write']);
    const stale = { headers: { 'if-match': '"7"' } };
    for (const [path, body] of [
      ['run_now', undefined],
      ['pause', undefined],
      ['resume', undefined],
      ['cancel', undefined],
      ['snooze', { delay_seconds: 5 }],
    ] as const) {
      const answer = await other.client.post(`/tasks/${id}/${path}`, body, stale);
      expect(answer.status, path).to.equal(403);
      expect(answer.at('details')).to.deep.equal({
        required_scopes: ['admin'],
        granted_scopes: ['tasks:read', 'tasks:write'],
      });
    }
    expect((await other.client.put(`/tasks/${id}`, { title: 'x' }, stale)).status).to.equal(403);
    expect((await other.client.get(`/tasks/${id}`)).status).to.equal(200);
  });

  it('let an admin change the tasks of all agents', async () => {
    const owner = await api().signIn(['tasks:write']);
    const { id } = await task(owner);
    expect((await api().admin.client.post(`/tasks/${id}/pause`)).status).to.equal(200);
  });

  it('write actor, reason and context to the events', async () => {
    const { id, client } = await task();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const paused = await client.post(`/tasks/${id}/pause`, undefined, {
      headers: {
        'x-reason': Buffer.from('Prüfung läuft').toString('latin1'),
        'x-request-id': 'from-the-client',
        traceparent,
      },
    });
    expect(paused.header('X-Request-Id')).to.equal('from-the-client');
    await client.post(`/tasks/${id}/resume`, undefined, {
      headers: { 'x-reason': 'geprüft', traceparent: 'nonsense', 'x-request-id': 'no good' },
    });
    const [, first, second] = await api().store.readStream(streams.task(id));
    expect(first?.metadata).to.include({
      actor: api().admin.id,
      reason: 'Prüfung läuft',
      $correlationId: 'from-the-client',
      traceparent,
    });
    expect(first?.metadata.source).to.contain('127.0.0.1');
    expect(second?.metadata.reason).to.equal('geprüft');
    expect(second?.metadata).to.not.have.property('traceparent');
    expect(second?.metadata.$correlationId).to.not.equal('no good');
  });

  it("count a reason's characters as in a body", async () => {
    const { id, client } = await task();
    const headers = { 'x-reason': Buffer.from('😀'.repeat(500)).toString('latin1') };
    expect((await client.post(`/tasks/${id}/pause`, undefined, { headers })).status).to.equal(200);
  });

  it('reject a reason that is too long', async () => {
    const { id, client } = await task();
    const headers = { 'x-reason': 'a'.repeat(501) };
    const refused = await client.post(`/tasks/${id}/pause`, undefined, { headers });
    expect(refused.status).to.equal(400);
    expect(refused.at('details.field')).to.equal('X-Reason');
  });
});
