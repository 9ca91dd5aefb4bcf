import { expect } from 'chai';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import type { ApiClient, ReceivedResponse } from '../../support/api-client.ts';
import type { OpenStores } from '../../support/api-stores.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { agentIn, allScopes } from './agent-in.ts';

const payload = { pipeline: [{ uses: 'echo', with: { text: 'north only' } }] };

/** The things of the namespace north, by the names that paths use for them. */
type Things = Readonly<Record<'task' | 'run' | 'backfill' | 'approval' | 'agent', string>>;

const byId = [
  'GET /tasks/{task}',
  'PUT /tasks/{task} {"title":"mine"}',
  'GET /tasks/{task}?as_of=2020-01-01T00:00:00Z',
  'GET /tasks/{task}/history',
  'GET /tasks/{task}/explain?at=2026-01-01T00:00:00Z',
  'GET /tasks/{task}/fires?from=2026-01-01&to=2026-12-31',
  'GET /tasks/{task}/calendar?from=2026-01-01&to=2026-01-31',
  'POST /tasks/check {"task_id":"{task}"}',
  'GET /tasks/{task}/backfills',
  'POST /tasks/{task}/run_now {}',
  'POST /tasks/{task}/pause',
  'POST /tasks/{task}/resume',
  'POST /tasks/{task}/snooze {"delay_seconds":60}',
  'POST /tasks/{task}/cancel',
  'POST /tasks/{task}/backfill {"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}',
  'GET /task/{task}/latest',
  'GET /task/{task}/stats',
  'GET /runs/{run}',
  'GET /runs/{run}/history',
  'GET /runs/{run}/artifacts/0000',
  'POST /runs/{run}/cancel',
  'POST /runs/{run}/retry {}',
  'GET /backfills/{backfill}',
  'POST /backfills/{backfill}/cancel',
  'GET /approvals/{approval}',
  'POST /approvals/{approval}/approve {}',
  'POST /approvals/{approval}/reject {}',
  'GET /agents/{agent}',
  'GET /agents/{agent}/history',
  'PUT /agents/{agent} {"name":"mine"}',
  'DELETE /agents/{agent}',
  'POST /agents/{agent}/credentials {}',
  'POST /agents/{agent}/webhook-secret',
  'POST /agents/{agent}/webhook-test',
  'GET /agents/{agent}/webhooks/deliveries',
  'POST /schedules/preview {"task_id":"{task}"}',
  'GET /streams/task-{task}',
  'GET /streams/run-{run}',
  'GET /streams/agent-{agent}',
  'GET /streams/backfill-{backfill}',
  'GET /streams/namespace-north',
  'GET /namespaces/north',
  'PUT /namespaces/north {"description":"mine"}',
] as const;

const lists = [
  'GET /tasks',
  'GET /tasks/due',
  'GET /tasks?sort=title',
  'GET /tasks/outcomes?ids={task}',
  'GET /tools',
  'GET /runs',
  'GET /runs?state=queued',
  'GET /runs?task_id={task}',
  'GET /approvals',
  'GET /approvals?run_id={run}',
  'GET /agents',
  'GET /audit',
  'GET /audit?stream=task-{task}',
  'GET /audit?stream=run-{run}',
  'GET /audit?actor={agent}',
  'GET /audit?actor=service',
  'GET /streams',
  'GET /streams?prefix=run-',
  'GET /runs/export',
  'GET /events/export',
  'GET /events/export?task_id={task}',
  'GET /stats/summary',
  'GET /stats/errors',
  'GET /stats/errors?task_id={task}',
  'GET /stats/tasks?sort=failing',
  'GET /concurrency/shared?created_by={agent}',
  'GET /namespaces',
] as const;

/** Tests that an agent of one namespace finds nothing of another one. */
export function describeIsolation(title: string, openStores: OpenStores | undefined): void {
  describe(`namespaces, ${title}`, () => {
    const api = useRunningApi({}, openStores);
    let things: Things;
    let north: SignedIn;
    let south: SignedIn;
    let plain: SignedIn;

    before(async () => {
      const { client } = api().admin;
      for (const name of ['north', 'south']) {
        expect((await client.post('/namespaces', { name })).status).to.equal(201);
      }
      north = await agentIn(api(), 'north');
      south = await agentIn(api(), 'south');
      plain = await api().signIn(allScopes);
      things = await fill(north);
    });

    async function fill({ id: agent, client }: SignedIn): Promise<Things> {
      const created = await client.post('/tasks', {
        title: 'A secret of the north',
        description: 'Only agents of the north see it.',
        schedule_kind: 'cron',
        schedule_expr: '0 * * * *',
        concurrency_key: 'shared',
        created_by: agent,
        payload,
      });
      const task = created.textAt('id');
      const ran = await client.post(`/tasks/${task}/run_now`, {});
      const run = ran.textAt('details.run_id');
      const span = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T01:00:00Z' };
      const backfilled = await client.post(`/tasks/${task}/backfill`, span);
      const backfill = backfilled.textAt('details.backfill_id');
      const approval = newId(api().clock.now());
      const now = new Date(api().clock.now()).toISOString();
      const suspended: DataOf<'RunStepSuspended'> = {
        step: 'ask',
        wait_id: approval,
        task_id: task,
        attempt: 1,
        namespace: 'north',
        since: now,
        until: '2099-01-01T00:00:00.000Z',
        waits_for: { kind: 'approval', message: 'Ship the north?', on_timeout: 'fail' },
      };
      await api().append(streams.run(run), [{ type: 'RunStepSuspended', data: suspended }]);
      await client.get(`/approvals/${approval}?after=${await api().store.head()}`);
      return { task, run, backfill, approval, agent };
    }

    const ask = (client: ApiClient, line: string, ids: Things): Promise<ReceivedResponse> => {
      const [method = '', rest = '', body] = line.match(/^(\S+) (\S+)(?: (.*))?$/)?.slice(1) ?? [];
      const filled = (text: string): string =>
        text.replace(/\{(\w+)\}/g, (_, name) => ids[name as keyof Things]);
      const path = filled(rest);
      const sent = body === undefined ? undefined : (JSON.parse(filled(body)) as object);
      return client.send(method, path, sent === undefined ? {} : { body: sent });
    };

    const unknown = (): Things => {
      const id = (): string => newId(api().clock.now());
      return { task: id(), run: id(), backfill: id(), approval: id(), agent: id() };
    };

    /**
     * A response without the parts that differ with each request, and with its ids replaced by their names in paths.
     */
    const plainly = ({ status, text }: ReceivedResponse, ids: Things): string => {
      let shown = text.replace(/"request_id":"[^"]*"/, '');
      for (const [name, id] of Object.entries(ids)) shown = shown.replaceAll(id, `{${name}}`);
      return `${String(status)} ${shown}`;
    };

    for (const line of byId) {
      it(`respond to ${line.replace(/ \{".*/, '')} of a neighbour as if the thing never existed`, async () => {
        const others = unknown();
        const strange = line.includes('north') ? line.replaceAll('north', 'nowhere') : line;
        const expected = plainly(await ask(south.client, strange, others), others);
        expect(expected).to.match(/^404 /);
        const found = plainly(await ask(south.client, line, things), things);
        expect(found.replaceAll('north', 'nowhere')).to.equal(expected);
        if (line.includes('nowhere') || line.includes('/namespaces')) return;
        const plainFound = plainly(await ask(plain.client, line, things), things);
        expect(plainFound).to.match(/^40[34] /);
        expect(plainFound).to.not.include('north only');
      });
    }

    for (const line of lists) {
      it(`show a neighbour nothing in ${line}`, async () => {
        for (const neighbour of [south, plain]) {
          const { status, text } = await ask(neighbour.client, line, things);
          expect(status, text).to.be.oneOf([200, 403]);
          const { task, run, backfill, approval, agent } = things;
          const ids = [task, run, backfill, approval, agent, 'A secret of the north', 'north only'];
          const asked = line.startsWith('GET /concurrency') ? [] : ids;
          for (const each of asked) expect(text, `${line} ${each}`).to.not.include(each);
        }
      });
    }

    it('show an agent its own namespace, and an admin all of them or one by name', async () => {
      const { client: admin } = api().admin;
      const totals = async (client: ApiClient, query: string): Promise<unknown[]> => [
        (await client.get(`/tasks${query}`)).at('total'),
        (await client.get(`/runs${query}`)).at('total'),
        (await client.get(`/approvals${query}`)).at('total'),
      ];
      expect(await totals(north.client, '')).to.deep.equal([1, 1, 1]);
      expect(await totals(south.client, '')).to.deep.equal([0, 0, 0]);
      expect(await totals(plain.client, '')).to.deep.equal([0, 0, 0]);
      expect(await totals(admin, '')).to.deep.equal([1, 1, 1]);
      expect(await totals(admin, '?namespace=north')).to.deep.equal([1, 1, 1]);
      expect(await totals(admin, '?namespace=south')).to.deep.equal([0, 0, 0]);
      expect(await totals(north.client, '?namespace=north')).to.deep.equal([1, 1, 1]);
      expect((await north.client.get('/tasks?namespace=south')).status).to.equal(404);
      expect((await north.client.get('/tasks')).at('items.0.namespace')).to.equal('north');
      const audited = await north.client.get('/audit?limit=200');
      expect(audited.text).to.include(things.task).and.to.include(things.agent);
      expect((await north.client.get(`/streams/task-${things.task}`)).status).to.equal(200);
    });

    it('do not serve a cached response to a neighbour', async () => {
      for (let n = 0; n < 2; n += 1) {
        expect((await north.client.get(`/tasks/${things.task}`)).status).to.equal(200);
        expect((await south.client.get(`/tasks/${things.task}`)).status).to.equal(404);
      }
    });

    it('are not named in the audit of a neighbour whose request was refused', async () => {
      const weak = await agentIn(api(), 'south', [], 'weak');
      const paused = await weak.client.post(`/tasks/${things.task}/pause`);
      expect(paused.status).to.equal(403);
      await api().refusals.flush();
      const after = await api().store.head();
      const { text } = await south.client.get(`/audit?outcome=refused&after=${after}`);
      expect(text).to.include('/pause').and.to.not.include('A secret of the north');
    });

    it('allow only agents of its own namespace to own a task', async () => {
      const { client: admin } = api().admin;
      const given = await admin.put(`/tasks/${things.task}`, { created_by: south.id });
      expect(given.status, given.text).to.equal(400);
      expect(given.text).to.include('is not an agent of the namespace north');
    });

    it('have their own audit, which includes changes of the namespace itself', async () => {
      const { client } = api().admin;
      await client.put('/namespaces/north', { description: 'The north' });
      const { text } = await north.client.get('/audit?stream=namespace-north');
      expect(text).to.include('NamespaceCreated').and.to.include('NamespaceUpdated');
    });
  });
}
