import { expect } from 'chai';
import type { JsonObject } from '../../../../domain/json.ts';
import { streams } from '../../../../domain/streams.ts';
import { pipelineSecrets, useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

const params_schema = {
  type: 'object',
  properties: { limit: { type: 'integer', minimum: 1 }, shop: { type: 'string' } },
  required: ['shop'],
  additionalProperties: false,
};

/** The task is only run manually, as nobody publishes under its topic. */
const byHand = { schedule_kind: 'event', schedule_expr: 'never.published' };

describe('params over HTTP', () => {
  const api = useRunningApi();
  const create = (params: object, more: object = {}) => {
    const { id, client } = api().admin;
    const payload = { params, pipeline: [] };
    return client.post('/tasks', { ...plainTask(id), payload, params_schema, ...more });
  };
  const taskWith = async (params: object, more: object = {}): Promise<string> => {
    const created = await create(params, more);
    expect(created.status, created.text).to.equal(201);
    return created.textAt('id');
  };
  const run = async (task: string, params?: object): Promise<string> => {
    const answer = await api().admin.client.post(`/tasks/${task}/run_now`, params && { params });
    expect(answer.status, answer.text).to.equal(200);
    return answer.textAt('details.run_id');
  };
  const paramsOf = async (runId: string, query = ''): Promise<unknown> =>
    (await api().admin.client.get(`/runs/${runId}${query}`)).at('params');

  describe('of a task', () => {
    it('have a schema, which the task shows and which can be changed and removed', async () => {
      const { client } = api().admin;
      const id = await taskWith({ shop: 'a' });
      const path = `/tasks/${id}`;
      expect((await client.get(path)).at('params_schema')).to.deep.equal(params_schema);
      const changed = await client.put(path, { params_schema: { type: 'object' } });
      expect(changed.at('params_schema')).to.deep.equal({ type: 'object' });
      expect((await client.put(path, { params_schema: null })).at('params_schema')).to.equal(null);
      const { items } = (await client.get('/tasks')).json as { readonly items: JsonObject[] };
      expect(items.find((task) => task['id'] === id)?.['params_schema']).to.equal(null);
    });

    it('have no schema by default', async () => {
      const { id, client } = api().admin;
      const created = await client.post('/tasks', plainTask(id));
      expect(created.at('params_schema')).to.equal(null);
      expect((await client.get(`/tasks/${created.textAt('id')}`)).at('params_schema')).to.equal(
        null,
      );
    });

    for (const [what, params, more, field] of [
      ['no JSON Schema', {}, { params_schema: { type: 'objekt' } }, 'params_schema.type'],
      [
        'another schema',
        {},
        { params_schema: { type: 'object', $ref: 'a.json' } },
        'params_schema',
      ],
      ['a wrong default', { shop: 'a', limit: 0 }, byHand, 'payload.params.limit'],
      ['an unknown default', { shop: 'a', limt: 1 }, byHand, 'payload.params.limt'],
      ['a schedule and a missing default', { limit: 1 }, {}, 'payload.params.shop'],
    ] as const) {
      it(`are refused with ${what}`, async () => {
        const refused = await create(params, more);
        expect(refused.status).to.equal(400);
        expect(refused.at('error')).to.equal('bad_request');
        expect(refused.at('details.field')).to.equal(field);
      });
    }

    it('are rejected when a change makes them invalid', async () => {
      const id = await taskWith({ limit: 1 }, byHand);
      const path = `/tasks/${id}`;
      const scheduled = { schedule_kind: 'cron', schedule_expr: '0 9 * * *' };
      const refused = await api().admin.client.put(path, scheduled);
      expect(refused.status).to.equal(400);
      expect(refused.at('message')).to.equal('payload.params.shop: is required by params_schema');
    });

    it('are refused with a schema beyond 64 KiB', async () => {
      const schema = { type: 'object', description: 'x'.repeat(64 * 1024) };
      const refused = await create({}, { params_schema: schema });
      expect(refused.status).to.equal(413);
      expect(refused.at('details')).to.deep.equal({ field: 'params_schema', limit: 64 * 1024 });
    });

    it('cause a warning if runs of events would lack a required param', async () => {
      const created = await create({}, byHand);
      const warning =
        'payload.params.shop: is required by params_schema and has no default, so runs triggered by events will fail';
      expect(created.at('warnings')).to.include(warning);
      const shown = await api().admin.client.get(`/tasks/${created.textAt('id')}`);
      expect(shown.at('warnings')).to.include(warning);
    });
  });

  describe('of a run', () => {
    it('include the defaults of the task, in a single run, in lists and as of the past', async () => {
      const { client } = api().admin;
      const id = await taskWith({ shop: 'a', limit: 1 });
      const [plain, given] = [await run(id), await run(id, { limit: 5 })];
      const [requested] = await api().store.readStream(streams.run(given));
      expect(requested?.data).to.deep.include({ params: { limit: 5 } });
      const [other] = await api().store.readStream(streams.run(plain));
      expect(other?.data).not.to.have.property('params');
      await client.put(`/tasks/${id}`, { payload: { params: { shop: 'b' }, pipeline: [] } });
      expect(await paramsOf(plain)).to.deep.equal({ shop: 'a', limit: 1 });
      expect(await paramsOf(given)).to.deep.equal({ shop: 'a', limit: 5 });
      const at = encodeURIComponent(requested?.position ?? '');
      expect(await paramsOf(given, `?as_of=${at}`)).to.deep.equal({ shop: 'a', limit: 5 });
      const list = (await client.get(`/runs?task_id=${id}`)).at('items') as JsonObject[];
      expect(list.map(({ params }) => params)).to.deep.equal([
        { shop: 'a', limit: 5 },
        { shop: 'a', limit: 1 },
      ]);
      const latest = await client.get(`/task/${id}/latest`);
      expect(latest.at('params')).to.deep.equal({ shop: 'a', limit: 5 });
    });

    it('are in exports', async () => {
      const id = await taskWith({ shop: 'a' });
      await run(id, { limit: 5 });
      const { client } = api().admin;
      const rows = await client.get(`/runs/export?task_id=${id}`);
      expect((JSON.parse(rows.text) as JsonObject)['params']).to.deep.equal({
        shop: 'a',
        limit: 5,
      });
      const csv = await client.get(`/runs/export?task_id=${id}&format=csv`);
      expect(csv.text).to.contain('"{""shop"":""a"",""limit"":5}"');
    });

    it('are in its history', async () => {
      const id = await taskWith({ shop: 'a' });
      const history = await api().admin.client.get(`/runs/${await run(id, { limit: 5 })}/history`);
      const [{ changes }] = history.at('items') as [{ readonly changes: readonly JsonObject[] }];
      const after = changes.find(({ path }) => path === 'params')?.['after'];
      expect(after).to.deep.equal({ shop: 'a', limit: 5 });
    });

    it('are rejected with 400 and the path of the key, and nothing is requested', async () => {
      const { client } = api().admin;
      const id = await taskWith({ shop: 'a' });
      for (const [params, message] of [
        [{ limit: 'many' }, 'params.limit: must be integer'],
        [{ limt: 5 }, 'params.limt: is not in params_schema'],
        [{ shop: null }, 'params.shop: must be string'],
      ] as const) {
        const refused = await client.post(`/tasks/${id}/run_now`, { params });
        expect(refused.status, refused.text).to.equal(400);
        expect(refused.at('message')).to.equal(message);
      }
      const shape = await client.post(`/tasks/${id}/run_now`, { params: [1] });
      expect(shape.at('details.field')).to.equal('params');
      expect((await client.get(`/runs?task_id=${id}`)).at('total')).to.equal(0);
    });

    it('must supply those for which an event task has no default', async () => {
      const id = await taskWith({}, byHand);
      const refused = await api().admin.client.post(`/tasks/${id}/run_now`);
      expect(refused.at('message')).to.equal('params.shop: is required by params_schema');
      expect(await paramsOf(await run(id, { shop: 'b' }))).to.deep.equal({ shop: 'b' });
    });

    it('may be any object up to 64 KiB without a schema', async () => {
      const id = await taskWith({ a: 1 }, { params_schema: null });
      expect(await paramsOf(await run(id, { a: [2], b: {} }))).to.deep.equal({ a: [2], b: {} });
      const params = { text: 'x'.repeat(64 * 1024) };
      const refused = await api().admin.client.post(`/tasks/${id}/run_now`, { params });
      expect(refused.status).to.equal(400);
      expect(refused.at('details.field')).to.equal('params');
    });

    it('are rejected when a pattern takes too long, and the service continues', async () => {
      const slow = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
      const id = await taskWith({}, { params_schema: slow });
      const params = { a: `${'a'.repeat(60)}!` };
      const refused = await api().admin.client.post(`/tasks/${id}/run_now`, { params });
      expect(refused.status).to.equal(400);
      expect(refused.at('message')).to.contain('takes too long to check');
    });

    it('belong to a command, so a repeated key needs the same params', async () => {
      const { client } = api().admin;
      const id = await taskWith({ shop: 'a' });
      const keyed = { headers: { 'idempotency-key': `params-${id}` } };
      const path = `/tasks/${id}/run_now`;
      const first = await client.post(path, { params: { limit: 5, shop: 'b' } }, keyed);
      const again = await client.post(path, { params: { shop: 'b', limit: 5 } }, keyed);
      expect(again.at('details.run_id')).to.equal(first.at('details.run_id'));
      expect((await client.post(path, { params: { limit: 6 } }, keyed)).status).to.equal(409);
      expect((await client.post(path, undefined, keyed)).status).to.equal(409);
    });

    it('show a mask in place of secrets that the pipeline reads', async () => {
      const { TOKEN = '' } = pipelineSecrets;
      const pipeline = [
        { uses: 'http.request', with: { url: 'http://a/', body: '${secrets.TOKEN}' } },
      ];
      const payload = { params: { header: `Bearer ${TOKEN}` }, pipeline };
      const id = await taskWith({}, { payload, params_schema: null });
      const shown = await paramsOf(await run(id, { more: [TOKEN], limit: 1 }));
      expect(shown).to.deep.equal({ header: 'Bearer ***', more: ['***'], limit: 1 });
    });

    it('are null while its task cannot be read, and the run is still shown', async () => {
      const { client } = api().admin;
      const id = await taskWith({ shop: 'a' });
      const runId = await run(id, { limit: 5 });
      // Memory has only the present task.
      await client.put(`/tasks/${id}`, { title: 'Changed' });
      await client.get(`/tasks/${id}`);
      api().store.away = true;
      const shown = await client.get(`/runs/${runId}`);
      const listed = await client.get(`/runs?task_id=${id}`);
      api().store.away = false;
      expect(shown.json).to.include({ id: runId, params: null, plan: null });
      expect(listed.at('items.0')).to.include({ id: runId, params: null });
      expect(await paramsOf(runId)).to.deep.equal({ shop: 'a', limit: 5 });
    });

    it('are kept if the overlap policy skips it', async () => {
      const id = await taskWith({ shop: 'a' }, { overlap_policy: 'skip' });
      await run(id);
      const skipped = await run(id, { limit: 5 });
      expect((await api().admin.client.get(`/runs/${skipped}`)).at('state')).to.equal('skipped');
      expect(await paramsOf(skipped)).to.deep.equal({ shop: 'a', limit: 5 });
    });

    it('are shown beside the event that triggered it', async () => {
      const { id: agent, client } = api().admin;
      const id = await taskWith({ shop: 'a' });
      const runId = await run(id);
      expect((await client.get(`/runs/${runId}`)).at('event')).to.equal(null);
      const event = {
        id: runId,
        topic: 'orders.created',
        payload: { order: 7 },
        source_agent_id: agent,
        published_at: '2026-03-01T09:00:00.000Z',
      };
      const [plain] = await api().store.readStream(streams.run(runId));
      const data = { ...(plain?.data as object), trigger: 'event', event };
      const other = 'e8f2a2a4-4f0a-5b1e-9d0a-1b2c3d4e5f60';
      await api().append(streams.run(other), [{ type: 'RunRequested', data } as never]);
      const shown = await client.get(`/runs/${other}`);
      expect(shown.json).to.deep.include({ event, params: { shop: 'a' } });
    });
  });

  describe('of a backfill', () => {
    const span = { from: '2026-11-01T00:00:00Z', to: '2026-11-01T03:00:00Z' };

    it('are recorded and shown', async () => {
      const { client } = api().admin;
      const id = await taskWith({ shop: 'a' });
      const body = { ...span, params: { limit: 5 } };
      const planned = await client.post(`/tasks/${id}/backfill`, { ...body, dry_run: true });
      expect(planned.at('details.params')).to.deep.equal({ limit: 5 });
      const asked = await client.post(`/tasks/${id}/backfill`, body);
      expect(asked.status, asked.text).to.equal(202);
      expect(asked.at('details.params')).to.deep.equal({ limit: 5 });
      const shown = await client.get(`/backfills/${asked.textAt('details.backfill_id')}`);
      expect(shown.at('params')).to.deep.equal({ limit: 5 });
    });

    it('are empty by default, and rejected if they do not match the schema of the task', async () => {
      const { client } = api().admin;
      const id = await taskWith({ shop: 'a' });
      const plain = await client.post(`/tasks/${id}/backfill`, { ...span, dry_run: true });
      expect(plain.at('details.params')).to.equal(null);
      const params = { limit: 0 };
      const refused = await client.post(`/tasks/${id}/backfill`, { ...span, params });
      expect(refused.status).to.equal(400);
      expect(refused.at('message')).to.equal('params.limit: must be at least 1');
    });
  });
});
