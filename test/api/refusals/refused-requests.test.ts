import { expect } from 'chai';
import { newId } from '../../../domain/ids.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('the HTTP interface refuses', () => {
  const api = useRunningApi();
  let task: string;
  before(async () => {
    const { admin } = api();
    task = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
  });

  it('a nullable field of another type, naming null as an alternative', async () => {
    const body = { ...plainTask(api().admin.id), dedupe_key: 7, webhook: 1, tags: [5] };
    const answer = await api().admin.client.post('/tasks', body);
    expect(answer.at('details.issues')).to.deep.include.members([
      { field: 'dedupe_key', issue: 'must be string or null' },
      { field: 'webhook', issue: 'is not a known field' },
      { field: 'tags.0', issue: 'must be string' },
    ]);
  });

  describe('a task with all its errors listed', () => {
    const wrong = {
      timezone: 'Nowhere',
      starts_at: 'soon',
      ends_at: 'later',
      schedule_expr: '61 * * * *',
      payload: { pipeline: [{}, { uses: 'sleep' }], params: 5 },
    };
    const all = [
      ...['timezone', 'starts_at', 'ends_at', 'payload.params', 'payload.pipeline.0.uses'],
      'schedule_expr',
    ];
    const fieldsOf = (answer: { at(path: string): unknown }): readonly string[] =>
      (answer.at('details.issues') as readonly { readonly field: string }[]).map(
        ({ field }) => field,
      );

    it('when it is created', async () => {
      const { admin } = api();
      const answer = await admin.client.post('/tasks', { ...plainTask(admin.id), ...wrong });
      expect(answer.status).to.equal(400);
      expect(fieldsOf(answer)).to.deep.equal(all);
      expect(answer.at('details.field')).to.equal('timezone');
    });

    it('when it is changed', async () => {
      const answer = await api().admin.client.put(`/tasks/${task}`, wrong);
      expect(fieldsOf(answer)).to.deep.equal(all);
    });

    it('when its schedule is previewed', async () => {
      const { payload: _payload, ...schedule } = wrong;
      const asked = { schedule_kind: 'cron', ...schedule };
      const answer = await api().admin.client.post('/schedules/preview', asked);
      expect(fieldsOf(answer)).to.deep.equal(['timezone', 'starts_at', 'ends_at', 'schedule_expr']);
    });

    it('even if its bounds are swapped', async () => {
      const { admin } = api();
      const answer = await admin.client.post('/tasks', {
        ...plainTask(admin.id),
        starts_at: '2091-01-01T00:00:00Z',
        ends_at: '2090-01-01T00:00:00Z',
        payload: { pipeline: [{}] },
      });
      expect(fieldsOf(answer)).to.deep.equal(['payload.pipeline.0.uses', 'ends_at']);
    });

    it('and lists only the first hundred of very many', async () => {
      const { admin } = api();
      const payload = { pipeline: Array.from({ length: 5000 }, () => 1) };
      const answer = await admin.client.post('/tasks', { ...plainTask(admin.id), payload });
      expect(fieldsOf(answer)).to.have.lengthOf(100);
    });
  });

  it('a span whose ends are not times, naming both ends', async () => {
    const { client } = api().admin;
    const refused: readonly (readonly [ReceivedResponse, string, string])[] = [
      [await client.get('/runs?start_time=x&end_time=y'), 'start_time', 'end_time'],
      [await client.get(`/runs?task_id=${task}&start_time=x&end_time=y`), 'start_time', 'end_time'],
      [await client.get('/audit?from=x&to=y'), 'from', 'to'],
      [
        await client.post('/runs/redrive', { start_time: 'x', end_time: 'y' }),
        ...(['start_time', 'end_time'] as const),
      ],
    ];
    for (const [answer, begin, end] of refused) {
      expect(answer.status).to.equal(400);
      expect(answer.at('details.issues.0.field')).to.equal(begin);
      expect(answer.at('details.issues.1.field')).to.equal(end);
    }
  });

  it('a payload over its own limit', async () => {
    const { admin } = api();
    const payload = { pipeline: [], params: { text: 'x'.repeat(256 * 1024) } };
    for (const answer of [
      await admin.client.post('/tasks', { ...plainTask(admin.id), payload }),
      await admin.client.put(`/tasks/${task}`, { payload }),
      await admin.client.post('/events', { topic: 'a', payload, source_agent_id: admin.id }),
    ]) {
      expect(answer.status, answer.text.slice(0, 200)).to.equal(413);
      expect(answer.at('details.field')).to.equal('payload');
    }
  });

  it('an agent that acts for another', async () => {
    const caller = await api().signIn(['tasks:write', 'events:publish']);
    const { admin } = api();
    const own = await caller.client.post('/tasks', plainTask(caller.id));
    for (const other of [admin.id, newId(0)]) {
      for (const answer of [
        await caller.client.post('/tasks', plainTask(other)),
        await caller.client.put(own.header('Location'), { created_by: other }),
        await caller.client.post('/events', { topic: 'a', payload: {}, source_agent_id: other }),
      ]) {
        expect(answer.status, answer.text).to.equal(403);
        expect(answer.at('details.required_scopes')).to.deep.equal(['admin']);
      }
    }
    expect((await admin.client.post('/tasks', plainTask(caller.id))).at('created_by')).to.equal(
      caller.id,
    );
  });

  it('unknown paths, before it requires a token', async () => {
    for (const [method, path] of [
      ['GET', '/nowhere'],
      ['GET', '/tasks/a/b/c'],
      ['GET', '/Tasks'],
      ['POST', '/nowhere/%ff'],
      ['GET', '//tasks'],
    ] as const) {
      const answer = await api().admin.client.send(method, path, { token: null });
      expect(answer.status, path).to.equal(404);
      expect(answer.at('details')).to.deep.equal({ resource: 'path', id: path });
    }
  });

  it('methods that a path lacks, naming the available ones', async () => {
    for (const [method, path, allowed] of [
      ['PATCH', '/tasks', 'POST, GET, HEAD, OPTIONS'],
      ['DELETE', `/tasks/${newId(0)}`, 'GET, PUT, HEAD, OPTIONS'],
      ['GET', '/agents/auth/token', 'POST, OPTIONS'],
      ['PROPFIND', '/runs', 'GET, HEAD, OPTIONS'],
    ] as const) {
      const answer = await api().admin.client.send(method, path, { token: null });
      expect(answer.status, path).to.equal(404);
      expect(answer.header('Allow')).to.equal(allowed);
    }
  });

  it('paths with invalid encoding', async () => {
    for (const path of ['/tasks/%', '/tasks/%ff', '/runs/%E0%A4%A', '/agents/%c0%ae/credentials']) {
      const method = path.endsWith('credentials') ? 'POST' : 'GET';
      const answer = await api().admin.client.send(method, path);
      expect(answer.status, path).to.equal(400);
      expect(answer.at('error')).to.equal('bad_request');
    }
    const query = await api().admin.client.get('/tasks?search=%ff%&tag=%');
    expect(query.status).to.equal(200);
  });
});
