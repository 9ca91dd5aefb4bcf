import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import type { OpenStores } from '../../../support/api-stores.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { openStandIns } from '../../../support/stand-in-stores.ts';
import { FailedRuns, start } from './failed-runs.ts';

function describeCancellation(title: string, openStores?: OpenStores): void {
  describe(`the cancellation of many runs ${title}`, () => {
    const api = useRunningApi({}, openStores);
    let caller: SignedIn;
    let runs: FailedRuns;
    beforeEach(async () => {
      caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read']);
      runs = new FailedRuns(api(), caller);
    });
    const cancel = async (body: object, path = '/runs/cancel'): Promise<ReceivedResponse> => {
      await caller.client.get(`/runs?limit=1&after=${await api().store.head()}`);
      const answer = await caller.client.post(path, body);
      expect(answer.status, answer.text).to.equal(200);
      return answer;
    };
    const stateOf = async (run: string): Promise<unknown> => {
      const path = `/runs/${run}?after=${await api().store.head()}`;
      return (await caller.client.get(path)).at('state');
    };

    it('counts first, and cancels what matches, oldest first', async () => {
      const task = await runs.makeTask();
      const [one, two] = [await runs.runNow(task), await runs.runNow(task)];
      const failed = await runs.failed(task);
      const asked = await cancel({ task_id: task, dry_run: true });
      expect(asked.at('message')).to.equal('2 runs would be canceled');
      expect(asked.at('details')).to.deep.include({ dry_run: true, count: 2, runs: [] });
      expect(await stateOf(one)).to.equal('queued');
      const done = await cancel({ task_id: task });
      expect(done.at('details.runs')).to.deep.equal([
        { run_id: one, task_id: task, old_state: 'queued' },
        { run_id: two, task_id: task, old_state: 'queued' },
      ]);
      expect(await stateOf(two)).to.equal('canceled');
      expect(await stateOf(failed)).to.equal('failed');
    });

    it('asks a running run to stop, and leaves other states alone', async () => {
      const task = await runs.makeTask();
      const [queued, running] = [await runs.runNow(task), await runs.runNow(task)];
      await api().append(streams.run(running), [start]);
      const done = await cancel({ task_id: task, state: 'running' });
      expect(done.at('message')).to.equal('1 run is canceled');
      const shown = await caller.client.get(`/runs/${running}?after=${await api().store.head()}`);
      expect(shown.json).to.include({ state: 'running', cancel_requested: true });
      expect(await stateOf(queued)).to.equal('queued');
    });

    it('cancels only the runs that are named, up to the limit', async () => {
      const task = await runs.makeTask();
      const all = [await runs.runNow(task), await runs.runNow(task), await runs.runNow(task)];
      const [one = '', two = '', three = ''] = all;
      const named = { run_ids: [one, three.toUpperCase(), newId(0)] };
      const first = await cancel({ ...named, limit: 1 });
      expect(first.at('details')).to.deep.include({ count: 1, next_cursor: null });
      const rest = await cancel(named);
      expect(rest.at('details')).to.deep.include({ count: 1, passed_over: { ended: 1 } });
      expect(await stateOf(three)).to.equal('canceled');
      expect(await stateOf(two)).to.equal('queued');
    });

    it("leaves out runs of other agents' tasks, and rejects a selection that names them by task or owner", async () => {
      const theirs = new FailedRuns(api(), api().admin);
      const task = await theirs.makeTask();
      const run = await theirs.runNow(task);
      const done = await cancel({ run_ids: [run] });
      expect(done.at('details')).to.deep.include({ count: 0, passed_over: { ended: 0 } });
      expect(await stateOf(run)).to.equal('queued');
      for (const body of [{ task_id: task }, { created_by: api().admin.id }]) {
        expect((await caller.client.post('/runs/cancel', body)).status).to.equal(403);
      }
    });

    it('continues with the cursor of the previous call', async () => {
      const task = await runs.makeTask();
      for (let n = 0; n < 3; n += 1) await runs.runNow(task);
      const first = await cancel({ task_id: task, limit: 2, dry_run: true });
      expect(first.at('details')).to.deep.include({ count: 2, left: 1 });
      const cursor = first.textAt('details.next_cursor');
      const rest = await cancel({ task_id: task, cursor, dry_run: true });
      expect(rest.at('details')).to.deep.include({ count: 1, left: 0, next_cursor: null });
    });

    it('can be repeated, and then cancels the remaining runs', async () => {
      const task = await runs.makeTask();
      await runs.runNow(task);
      const headers = { 'idempotency-key': newId(0) };
      await caller.client.get(`/runs?limit=1&after=${await api().store.head()}`);
      const once = await caller.client.post('/runs/cancel', { task_id: task }, { headers });
      const again = await caller.client.post('/runs/cancel', { task_id: task }, { headers });
      expect(again.json).to.deep.equal(once.json);
    });
  });

  describe(`a redrive of named runs ${title}`, () => {
    const api = useRunningApi({}, openStores);

    it('retries these runs, and says which of them have not failed', async () => {
      const caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read']);
      const runs = new FailedRuns(api(), caller);
      const task = await runs.makeTask();
      const [failed, other] = [await runs.failed(task), await runs.failed(task)];
      const queued = await runs.runNow(task);
      await caller.client.get(`/runs?limit=1&after=${await api().store.head()}`);
      const body = { run_ids: [failed, queued] };
      const answer = await caller.client.post('/runs/redrive', body);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.at('details.count')).to.equal(1);
      expect(answer.at('details.passed_over')).to.deep.include({ not_failed: 1 });
      expect(answer.at('details.runs.0.retry_of')).to.equal(failed);
      expect((await caller.client.get(`/runs/${other}`)).at('retried_by')).to.equal(null);
    });
  });
}

describeCancellation('over the embedded stores');
describeCancellation('over servers', openStandIns);
