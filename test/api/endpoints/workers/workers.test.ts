import { expect } from 'chai';
import { useRunningApi } from '../../../support/running-api.ts';
import { found } from '../../../support/signals.ts';
import { OpenJobs, anySchema } from './open-jobs.ts';

const UNKNOWN = '11111111-1111-4111-8111-111111111111';

describe('workers over HTTP', () => {
  const api = useRunningApi();
  let open: OpenJobs;
  before(async () => {
    open = await OpenJobs.make(api());
  });

  const tool = (name: string, schema: object = anySchema) => ({
    name,
    description: 'a tool',
    schema,
  });

  describe('a registration', () => {
    it('returns the id, the length of a lease and the interval of heartbeats', async () => {
      const { client } = await api().signIn(['jobs:work']);
      const body = { name: 'one', slots: 2, tools: [tool('reg.one')] };
      const answer = await client.post('/workers', body);
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.json).to.include({ lease_seconds: 30, heartbeat_seconds: 10 });
    });

    it('needs the scope jobs:work', async () => {
      const { client } = await api().signIn(['tasks:write']);
      const body = { name: 'one', slots: 2, tools: [tool('reg.scope')] };
      expect((await client.post('/workers', body)).status).to.equal(403);
    });

    it('rejects names of built-in tools', async () => {
      const { client } = await api().signIn(['jobs:work']);
      const body = { name: 'one', slots: 2, tools: [tool('reg.fine'), tool('http.request')] };
      const answer = await client.post('/workers', body);
      expect(answer.status).to.equal(409);
      expect(answer.at('details.tool')).to.equal('http.request');
    });

    it('rejects names of tools of extensions', async () => {
      const { tools } = api();
      const run = () => null;
      tools.register({ name: 'ext.tool', description: 'of an extension', schema: {}, run });
      const { client } = await api().signIn(['jobs:work']);
      const body = { name: 'one', slots: 2, tools: [tool('ext.tool')] };
      expect((await client.post('/workers', body)).status).to.equal(409);
      tools.unregister('ext.tool');
    });

    it('rejects schemas that are not valid, and repeated tools', async () => {
      const { client } = await api().signIn(['jobs:work']);
      const tools = [tool('reg.bad', { type: 'strin' }), tool('reg.twice'), tool('reg.twice')];
      const answer = await client.post('/workers', { name: 'one', slots: 2, tools });
      expect(answer.status).to.equal(400);
      const fields = (answer.at('details.issues') as { field: string }[]).map(({ field }) => field);
      expect(fields).to.deep.equal(['tools.0.schema', 'tools.2.name']);
    });

    it('creates one worker even if it is repeated with its Idempotency-Key', async () => {
      const { client } = await api().signIn(['jobs:work']);
      const body = { name: 'keyed', slots: 2, tools: [tool('reg.keyed')] };
      const headers = { 'idempotency-key': 'register-1' };
      const first = await client.post('/workers', body, { headers });
      const second = await client.post('/workers', body, { headers });
      expect(second.textAt('worker_id')).to.equal(first.textAt('worker_id'));
    });

    it('replaces the worker of the same name and agent, which gets no more jobs', async () => {
      const first = await open.worker(['reg.replaced'], { name: 'same' });
      const waiting = first.poll('?wait=30');
      await found(() => (api().jobs.waiting > 0 ? true : undefined));
      const second = await open.worker(['reg.replaced'], { name: 'same', agent: first.agent });
      expect(second.id).to.not.equal(first.id);
      expect((await waiting).json).to.deep.equal({ jobs: [] });
      const refused = await first.poll();
      expect(refused.status).to.equal(409);
      expect(refused.at('details.reason')).to.equal('replaced');
      expect((await second.poll()).status).to.equal(200);
      const listed = await first.agent.client.get('/workers');
      expect(listed.at('total')).to.equal(1);
      expect(listed.at('items.0.id')).to.equal(second.id);
    });

    it('leaves workers of the same name of other agents alone', async () => {
      const first = await open.worker(['reg.other'], { name: 'same' });
      await open.worker(['reg.other'], { name: 'same' });
      expect((await first.poll()).status).to.equal(200);
    });
  });

  describe('a tool of a worker', () => {
    const taskOf = (uses: string, args: object) => ({
      title: 'uses it',
      description: 'a task',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: api().admin.id,
      payload: { pipeline: [{ id: 'one', uses, with: args }] },
    });
    const needs = (field: string) => ({
      type: 'object',
      properties: { [field]: { type: 'string' } },
      required: [field],
    });

    it('has its arguments checked when a task is created', async () => {
      await open.worker([tool('mail.send', needs('to'))]);
      const bad = await api().admin.client.post('/tasks', taskOf('mail.send', {}));
      expect(bad.status).to.equal(400);
      expect(bad.at('details.field')).to.equal('payload.pipeline.0.with.to');
      const good = await api().admin.client.post('/tasks', taskOf('mail.send', { to: 'me' }));
      expect(good.status).to.equal(201);
      expect(good.at('warnings')).to.deep.equal([]);
    });

    it('has the schema that any agent registered last', async () => {
      await open.worker([tool('mail.later', needs('to'))]);
      await open.worker([tool('mail.later', needs('address'))]);
      const bad = await api().admin.client.post('/tasks', taskOf('mail.later', { to: 'me' }));
      expect(bad.at('details.field')).to.equal('payload.pipeline.0.with.address');
    });

    it('is still known after its workers are gone', async () => {
      const worker = await open.worker([tool('mail.gone', needs('to'))]);
      await worker.agent.client.delete(`/workers/${worker.id}`);
      const bad = await api().admin.client.post('/tasks', taskOf('mail.gone', {}));
      expect(bad.status).to.equal(400);
    });

    it('is listed for pipelines, and rejects a call outside a run', async () => {
      await open.worker(['mail.direct']);
      const listed = api()
        .tools.of('default')
        .list()
        .find(({ name }) => name === 'mail.direct');
      expect(listed?.isExternal).to.equal(true);
      expect(() => listed?.run({}, {} as never)).to.throw(/only for steps of runs/);
    });
  });

  describe('the list', () => {
    it('shows the tools and jobs of a worker, and when it was last heard of', async () => {
      const worker = await open.worker(['list.tool'], { labels: { region: 'eu' } });
      const { runId, jobId } = await open.open({ tool: 'list.tool' });
      await worker.job();
      const answer = await worker.agent.client.get('/workers');
      const [shown] = answer.at('items') as Record<string, unknown>[];
      expect(shown).to.deep.include({
        id: worker.id,
        agent_id: worker.agent.id,
        agent_name: (await api().admin.client.get(`/agents/${worker.agent.id}`)).textAt('name'),
        name: 'worker',
        state: 'active',
        slots: 4,
        labels: { region: 'eu' },
        ended_at: null,
        tools: [tool('list.tool')],
      });
      expect(shown?.['last_seen_at']).to.be.a('string');
      expect(answer.at('items.0.jobs.0')).to.include({ job_id: jobId, run_id: runId });
    });

    it('shows an agent its own workers, and all of them with the scope ops', async () => {
      const worker = await open.worker(['list.own']);
      const other = await open.worker(['list.own']);
      const own = await worker.agent.client.get('/workers');
      expect((own.at('items') as { id: string }[]).map(({ id }) => id)).to.deep.equal([worker.id]);
      const { client } = await api().signIn(['ops']);
      const after = own.headers['x-event-position'] ?? (await api().store.head());
      const all = await client.get(`/workers?limit=200&after=${String(after)}`);
      const ids = (all.at('items') as { id: string }[]).map(({ id }) => id);
      expect(ids).to.include.members([worker.id, other.id]);
    });
  });

  describe('a drained worker', () => {
    it('gets no more jobs, and may complete those that it has', async () => {
      const worker = await open.worker(['drain.tool']);
      const { runId } = await open.open({ tool: 'drain.tool' });
      const job = await worker.job();
      const drained = await worker.agent.client.delete(`/workers/${worker.id}`);
      expect(drained.status, drained.text).to.equal(200);
      expect(drained.at('details')).to.deep.equal({ worker_id: worker.id, jobs: 1 });
      const refused = await worker.poll();
      expect(refused.status).to.equal(409);
      expect(refused.at('details.reason')).to.equal('drained');
      const beat = await worker.say(job, 'heartbeat', { lease: job.lease });
      expect(beat.json).to.deep.equal({ cancel_requested: false });
      const done = await worker.say(job, 'complete', { lease: job.lease, result: 7 });
      expect(done.status, done.text).to.equal(200);
      expect(await open.eventsOf(runId, 'RunStepResumed')).to.have.length(1);
      const listed = await worker.agent.client.get('/workers?state=drained');
      expect(listed.at('items.0.id')).to.equal(worker.id);
    });

    it('gets a response to its waiting request at once', async () => {
      const worker = await open.worker(['drain.waiting']);
      const waiting = worker.poll('?wait=30');
      await found(() => (api().jobs.waiting > 0 ? true : undefined));
      await worker.agent.client.delete(`/workers/${worker.id}`);
      expect((await waiting).json).to.deep.equal({ jobs: [] });
    });

    it('may be drained by an operator, even without the scope jobs:work', async () => {
      const worker = await open.worker(['drain.operator']);
      const { client } = await api().signIn(['ops']);
      const drained = await client.delete(`/workers/${worker.id}`);
      expect(drained.status, drained.text).to.equal(200);
      expect((await worker.poll()).at('details.reason')).to.equal('drained');
      expect((await client.post(`/workers/${worker.id}/jobs`)).status).to.equal(403);
      expect((await client.delete(`/workers/${UNKNOWN}`)).status).to.equal(404);
    });

    it('is drained once', async () => {
      const worker = await open.worker(['drain.once']);
      await worker.agent.client.delete(`/workers/${worker.id}`);
      const again = await worker.agent.client.delete(`/workers/${worker.id}`);
      expect(again.status).to.equal(200);
    });
  });

  it('responds with 404 for unknown workers, and with 403 for those of other agents', async () => {
    const worker = await open.worker(['other.agents']);
    const { client } = await api().signIn(['jobs:work']);
    expect((await client.post(`/workers/${UNKNOWN}/jobs`)).status).to.equal(404);
    expect((await client.post(`/workers/${worker.id}/jobs`)).status).to.equal(403);
    expect((await client.delete(`/workers/${worker.id}`)).status).to.equal(403);
  });
});
