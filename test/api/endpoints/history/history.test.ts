import { expect } from 'chai';
import type { DomainEvent } from '../../../../domain/events/catalogue.ts';
import { newId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { inKolkata, plainTask } from '../../plain-task.ts';

const MINUTE = 60_000;

describe('the history over HTTP', () => {
  const api = useRunningApi();
  let auditor: SignedIn;
  before(async () => {
    auditor = await api().signIn(['audit:read', 'tasks:read', 'runs:read']);
  });
  const now = (): string => new Date(api().clock.now()).toISOString();
  const reason = (text: string) => ({ headers: { 'x-reason': text } });

  async function makeTask(fields: object = {}): Promise<string> {
    const { admin } = api();
    const made = await admin.client.post('/tasks', { ...plainTask(admin.id), ...fields });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }
  async function history(path: string, query = '') {
    const answer = await auditor.client.get(`${path}/history${query}`);
    expect(answer.status, answer.text).to.equal(200);
    return answer.at('items') as readonly {
      readonly revision: number;
      readonly at: string;
      readonly actor: string;
      readonly type: string;
      readonly reason: string | null;
      readonly changes: readonly { path: string; before: unknown; after: unknown }[];
    }[];
  }
  const fired = (nominal: string, next: string, run_id: string): DomainEvent => ({
    type: 'Fired',
    data: { nominal, run_id, next_fire_at: next, task_revision: 0, fire_count: 1 },
  });

  it('of a task lists who changed what, and why, oldest first', async () => {
    const { admin } = api();
    const id = await makeTask({ title: 'before' });
    await admin.client.put(`/tasks/${id}`, { title: 'after' }, reason('a better name'));
    await admin.client.post(`/tasks/${id}/pause`, undefined, reason('holidays'));
    const items = await history(`/tasks/${id}`);
    expect(items.map(({ revision, type }) => [revision, type])).to.deep.equal([
      [0, 'TaskCreated'],
      [1, 'TaskUpdated'],
      [2, 'TaskPaused'],
    ]);
    expect(items[0]?.changes).to.deep.include({ path: 'title', before: null, after: 'before' });
    expect(items[1]?.changes).to.deep.equal([{ path: 'title', before: 'before', after: 'after' }]);
    expect(items[1]).to.include({ actor: admin.id, reason: 'a better name' });
    expect(items[2]?.changes.slice(0, 2)).to.deep.equal([
      { path: 'pause_reason', before: null, after: 'request' },
      { path: 'status', before: 'active', after: 'paused' },
    ]);
    expect(items[2]?.reason).to.equal('holidays');
  });

  it('of a snoozed task knows the earlier fires', async () => {
    const id = await makeTask({ schedule_kind: 'cron', schedule_expr: '0 0 1 1 *' });
    const next = '2099-06-01T00:00:00.000Z';
    await api().append(streams.fires(id), [fired('2099-01-01T00:00:00.000Z', next, id)]);
    const snoozed = await api().admin.client.post(`/tasks/${id}/snooze`, { delay_seconds: 60 });
    expect(snoozed.status, snoozed.text).to.equal(200);
    const items = await history(`/tasks/${id}`);
    expect(items[1]?.changes).to.deep.equal([
      { path: 'next_run_at', before: next, after: '2099-06-01T00:01:00.000Z' },
    ]);
  });

  it('of a run lists its states', async () => {
    const task = await makeTask();
    const run = (await api().admin.client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
    const leased_until = now();
    await api().append(streams.run(run), [
      { type: 'RunStarted', data: { worker: 'w', attempt: 1, leased_until } },
    ]);
    const items = await history(`/runs/${run}`);
    expect(items.map(({ type }) => type)).to.deep.equal(['RunRequested', 'RunStarted']);
    expect(items[1]?.changes).to.deep.include({
      path: 'state',
      before: 'queued',
      after: 'running',
    });
  });

  it('of an agent shows no secret, and remains after its removal', async () => {
    const { admin } = api();
    const made = await admin.client.post('/agents', { name: 'to be removed', scopes: [] });
    const id = made.textAt('id');
    await admin.client.post(`/agents/${id}/credentials`);
    await admin.client.delete(`/agents/${id}`);
    const items = await history(`/agents/${id}`);
    expect(items.map(({ type }) => type)).to.deep.equal([
      'AgentRegistered',
      'AgentCredentialsSet',
      'AgentRemoved',
    ]);
    expect(items[1]?.changes).to.deep.equal([
      { path: 'credentials_revision', before: null, after: 1 },
    ]);
    expect(items[2]?.changes).to.deep.include({
      path: 'name',
      before: 'to be removed',
      after: null,
    });
    expect(JSON.stringify(items)).to.not.match(/scrypt|secret_hash/);
  });

  it('is paged', async () => {
    const id = await makeTask();
    for (const title of ['b', 'c', 'd']) await api().admin.client.put(`/tasks/${id}`, { title });
    const first = await auditor.client.get(`/tasks/${id}/history?limit=3`);
    expect((first.at('items') as unknown[]).length).to.equal(3);
    expect(first.at('next_cursor')).to.equal('3');
    const second = await auditor.client.get(`/tasks/${id}/history?limit=3&cursor=3`);
    expect(second.at('items.0.changes')).to.deep.equal([
      { path: 'title', before: 'c', after: 'd' },
    ]);
    expect(second.at('next_cursor')).to.equal(null);
  });

  describe('a record as of a time', () => {
    it('shows a task as it was, by instant and by position', async () => {
      const { admin } = api();
      const id = await makeTask({ title: 'first' });
      const then = now();
      const position = await api().store.head();
      api().clock.shift(MINUTE);
      await admin.client.put(`/tasks/${id}`, { title: 'second' });
      for (const as_of of [then, position]) {
        const past = await auditor.client.get(`/tasks/${id}?as_of=${as_of}`);
        expect(past.status, past.text).to.equal(200);
        expect(past.at('title')).to.equal('first');
        expect(past.header('ETag')).to.equal('"0"');
      }
      const present = await auditor.client.get(`/tasks/${id}?as_of=${now()}`);
      const known = await admin.client.get(`/tasks/${id}`);
      expect(present.json).to.deep.equal(known.json);
    });

    it("reads a time without an offset in the task's zone", async () => {
      const id = await makeTask({ title: 'first', timezone: 'Asia/Kolkata' });
      const then = inKolkata(api().clock.now());
      api().clock.shift(MINUTE);
      await api().admin.client.put(`/tasks/${id}`, { title: 'second' });
      const past = await auditor.client.get(`/tasks/${id}?as_of=${then}`);
      expect(past.status, past.text).to.equal(200);
      expect(past.at('title')).to.equal('first');
      const unknown = await auditor.client.get(`/tasks/${newId(0)}?as_of=${then}`);
      expect(unknown.status).to.equal(404);
      const ofAgent = await api().admin.client.get(`/agents/${api().admin.id}?as_of=${then}`);
      expect([ofAgent.status, ofAgent.at('details.field')]).to.deep.equal([400, 'as_of']);
    });

    it('shows the next fire that the task had, over many fires', async () => {
      const id = await makeTask({ schedule_kind: 'cron', schedule_expr: '0 0 1 1 *' });
      const positions: string[] = [];
      const instants: string[] = [];
      const year = (n: number): string => `${2100 + n}-01-01T00:00:00.000Z`;
      for (let n = 0; n < 60; n += 1) {
        await api().append(streams.fires(id), [fired(year(n), year(n + 1), id)]);
        positions.push(await api().store.head());
        instants.push(now());
        api().clock.shift(MINUTE);
      }
      for (const n of [0, 1, 17, 30, 58, 59]) {
        for (const as_of of [positions[n], instants[n]]) {
          const past = await auditor.client.get(`/tasks/${id}?as_of=${as_of}`);
          expect(past.at('next_run_at'), `fire ${n}`).to.equal(year(n + 1));
        }
      }
    });

    it('shows the last run that the task had', async () => {
      const id = await makeTask();
      const marks: { readonly started: string; readonly position: string; at: string }[] = [];
      for (let n = 0; n < 3; n += 1) {
        const path = `/tasks/${id}/run_now`;
        const run = (await api().admin.client.post(path)).textAt('details.run_id');
        const started = now();
        await api().append(streams.run(run), [
          { type: 'RunStarted', data: { worker: 'w', attempt: 1, leased_until: started } },
        ]);
        const shown = await api().admin.client.get(
          `/runs/${run}?after=${await api().store.head()}`,
        );
        const position = await api().store.head();
        marks.push({ started: shown.textAt('started_at'), position, at: now() });
        api().clock.shift(MINUTE);
      }
      for (const { started, position, at } of marks) {
        for (const as_of of [position, at]) {
          const past = await auditor.client.get(`/tasks/${id}?as_of=${as_of}`);
          expect(past.at('last_run_at')).to.equal(started);
        }
      }
    });

    it('shows a run and an agent as they were', async () => {
      const { admin } = api();
      const task = await makeTask();
      const run = (await admin.client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
      const agent = (await admin.client.post('/agents', { name: 'old', scopes: [] })).textAt('id');
      const then = now();
      api().clock.shift(MINUTE);
      await admin.client.post(`/runs/${run}/cancel`);
      await admin.client.put(`/agents/${agent}`, { name: 'new' });
      const past = await auditor.client.get(`/runs/${run}?as_of=${then}`);
      expect(past.at('state')).to.equal('queued');
      const was = await admin.client.get(`/agents/${agent}?as_of=${then}`);
      expect(was.at('name')).to.equal('old');
      const removed = now();
      api().clock.shift(MINUTE);
      await admin.client.delete(`/agents/${agent}`);
      expect((await admin.client.get(`/agents/${agent}?as_of=${removed}`)).at('name')).to.equal(
        'new',
      );
      expect((await admin.client.get(`/agents/${agent}?as_of=${now()}`)).status).to.equal(404);
    });

    it('shows nothing before the creation', async () => {
      const before = now();
      api().clock.shift(MINUTE);
      const id = await makeTask();
      const answer = await auditor.client.get(`/tasks/${id}?as_of=${before}`);
      expect(answer.status).to.equal(404);
    });

    it('is refused without the scope audit:read, and for an invalid time', async () => {
      const id = await makeTask();
      const reader = await api().signIn(['tasks:read']);
      const answer = await reader.client.get(`/tasks/${id}?as_of=${now()}`);
      expect(answer.status).to.equal(403);
      expect(answer.at('details.required_scopes')).to.deep.equal(['audit:read']);
      for (const as_of of ['yesterday', '9999999999999999', '2026-11-21T25:00:00', '']) {
        const bad = await auditor.client.get(`/tasks/${id}?as_of=${as_of}`);
        expect(bad.status, as_of).to.equal(400);
        expect(bad.at('details.field')).to.equal('as_of');
      }
      const short = await auditor.client.get(`/tasks/${id}?as_of=12`);
      expect(short.status).to.equal(400);
      expect(short.at('details.issue')).to.include('a position must have all its digits');
    });
  });
});
