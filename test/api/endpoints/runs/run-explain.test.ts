import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { changeKey } from '../../../../domain/keys/key-stream.ts';
import { holdKey } from '../../../../domain/keys/key.ts';
import { argumentsHash } from '../../../../domain/runs/arguments-hash.ts';
import { streams } from '../../../../domain/streams.ts';
import { request, stepEnd } from '../../../projections/recorded.ts';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import type { OpenStores } from '../../../support/api-stores.ts';
import { pipelineSecrets, useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { openStandIns } from '../../../support/stand-in-stores.ts';
import { FailedRuns, start } from './failed-runs.ts';

interface Obstacle {
  readonly kind: string;
  readonly text: string;
}

function describeExplanation(title: string, openStores?: OpenStores): void {
  describe(`the explanation of a run ${title}`, () => {
    const api = useRunningApi({}, openStores);
    let caller: SignedIn;
    let runs: FailedRuns;
    before(() => api().coordination.heartbeat('w', { roles: ['worker'] }, 600_000));
    beforeEach(async () => {
      caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read'], `ada-${newId(0)}`);
      runs = new FailedRuns(api(), caller);
    });
    const explain = async (run: string, query = ''): Promise<ReceivedResponse> => {
      const path = `/runs/${run}/explain?after=${await api().store.head()}${query}`;
      const answer = await caller.client.get(path);
      expect(answer.status, answer.text).to.equal(200);
      return answer;
    };
    const obstacles = async (run: string): Promise<readonly Obstacle[]> =>
      (await explain(run)).at('waits_for') as readonly Obstacle[];
    const iso = (shift: number): string => new Date(api().clock.now() + shift).toISOString();

    it('says who requested it, and why', async () => {
      const task = await runs.makeTask();
      const headers = { 'x-reason': 'to see it' };
      const asked = await caller.client.post(`/tasks/${task}/run_now`, {}, { headers });
      const run = asked.textAt('details.run_id');
      const requested = (await explain(run)).at('requested') as Record<string, unknown>;
      expect(requested).to.deep.include({ by: caller.id, reason: 'to see it' });
      expect(requested['text']).to.equal(`${String(requested['by_name'])} started it by hand.`);
      const failed = await runs.failed(task);
      const retry = await caller.client.post(`/runs/${failed}/retry`);
      const text = (await explain(retry.textAt('details.run_id'))).textAt('requested.text');
      expect(text).to.equal(`${String(requested['by_name'])} retried run ${failed}.`);
      const due = newId(api().clock.now());
      const data = request({ task_id: task, created_by: caller.id });
      await api().append(streams.run(due), [{ type: 'RunRequested', data }]);
      expect((await explain(due)).textAt('requested.text')).to.equal(
        'The schedule of its task was due at 2026-03-01T09:00:00Z.',
      );
    });

    it('names the previous and the next run of its task', async () => {
      const task = await runs.makeTask();
      const all = [await runs.runNow(task), await runs.failed(task), await runs.runNow(task)];
      const beside = async (run = '') => {
        const { json } = await explain(run);
        return [json['previous_run_id'], json['next_run_id']];
      };
      expect(await beside(all[0])).to.deep.equal([null, all[1]]);
      expect(await beside(all[1])).to.deep.equal([all[0], all[2]]);
      expect(await beside(all[2])).to.deep.equal([all[1], null]);
    });

    it('says that the service is on hold, by whom and why', async () => {
      const run = await runs.runNow(await runs.makeTask());
      expect(await obstacles(run)).to.deep.equal([]);
      const { client, id } = api().admin;
      await client.post('/operations/hold', { reason: 'the disk is full' });
      const [hold] = await obstacles(run);
      await client.post('/operations/release', {});
      expect(hold).to.include({
        kind: 'hold',
        by: id,
        by_name: 'admin',
        reason: 'the disk is full',
      });
      expect(await obstacles(run)).to.deep.equal([]);
    });

    it('says who paused its task, if that keeps it from starting', async () => {
      const task = await runs.makeTask();
      const run = newId(api().clock.now());
      const data = request({ task_id: task, created_by: caller.id, trigger: 'backfill' });
      await api().append(streams.run(run), [{ type: 'RunRequested', data }]);
      const byHand = await runs.runNow(task);
      const headers = { 'x-reason': 'maintenance' };
      await caller.client.post(`/tasks/${task}/pause`, undefined, { headers });
      const [pause] = await obstacles(run);
      expect(pause).to.include({ kind: 'pause', by: caller.id, reason: 'maintenance' });
      expect(pause?.text).to.contain('this run waits unless it is resumed');
      expect(await obstacles(byHand)).to.deep.equal([]);
    });

    it('says until when a retry or a start is delayed', async () => {
      const task = await runs.makeTask();
      const run = await runs.runNow(task);
      await api().append(streams.run(run), [start]);
      expect(await obstacles(run)).to.deep.equal([]);
      const retry_at = iso(60_000);
      const failure = { attempt: 1, error: 'e', step: null, retry_at };
      await api().append(streams.run(run), [{ type: 'RunAttemptFailed', data: failure }]);
      const [delay] = await obstacles(run);
      expect(delay).to.include({ kind: 'retry', until: retry_at });
      const later = newId(api().clock.now());
      const data = request({ task_id: task, created_by: caller.id, run_at: retry_at });
      await api().append(streams.run(later), [{ type: 'RunRequested', data }]);
      expect((await obstacles(later))[0]).to.include({ kind: 'time', until: retry_at });
    });

    it('names the runs that hold its concurrency key', async () => {
      const task = await runs.makeTask({ concurrency_key: 'printer', concurrency_limit: 1 });
      const [holder, waiter] = [await runs.runNow(task), await runs.runNow(task)];
      const now = api().clock.now();
      const name = { kind: 'concurrency', owner: caller.id, key: 'printer' } as const;
      const context = { actor: 'service', source: 'w', correlationId: 'c', now };
      for (const run_id of [holder, waiter]) {
        const claim = {
          run_id,
          task_id: task,
          trigger: 'manual',
          priority: 5,
          since: now,
        } as const;
        await changeKey(api().store, name, context, (state) => {
          const { events, outcome } = holdKey(state, { ...claim, limit: 1, attempt: 1 }, now);
          return { events, answer: outcome };
        });
      }
      const [key] = await obstacles(waiter);
      expect(key).to.deep.include({ kind: 'key', run_ids: [holder] });
      expect(key?.text).to.equal('It waits for the concurrency key printer: 1 of 1 in use.');
      expect(await obstacles(holder)).to.deep.equal([]);
    });

    it('says that all slots are in use, or that there is no worker', async () => {
      const run = await runs.runNow(await runs.makeTask());
      const { coordination } = api();
      const slots = { slots: 2, taken: 2, full_since: iso(-5000), holders: [] };
      await coordination.heartbeat('w', { roles: ['worker'], slots }, 600_000);
      const [slot] = await obstacles(run);
      expect(slot).to.include({ kind: 'slot', text: 'It waits for a slot: 2 of 2 in use.' });
      await coordination.forget('w');
      expect((await obstacles(run))[0]).to.include({ kind: 'worker' });
      await coordination.heartbeat('w', { roles: ['worker'] }, 600_000);
    });

    it('says that the agent of its task is disabled, and by whom', async () => {
      const run = await runs.runNow(await runs.makeTask());
      const path = `/agents/${caller.id}`;
      const { client, id } = api().admin;
      expect((await client.post(`${path}/disable`)).status).to.equal(200);
      const head = await api().store.head();
      const { json } = await client.get(`/runs/${run}/explain?after=${head}`);
      const [agent] = json['waits_for'] as readonly Obstacle[];
      expect(agent).to.include({ kind: 'agent', by: id, by_name: 'admin' });
    });

    it('compares its steps with earlier runs of its task', async () => {
      const task = await runs.makeTask();
      for (let n = 0; n < 5; n += 1) {
        const before = await runs.runNow(task);
        await runs.failWith(task, before, [stepEnd('a'), stepEnd('b')]);
      }
      const run = await runs.runNow(task);
      const late = '2026-03-01T09:00:04.000Z';
      await runs.failWith(task, run, [stepEnd('a'), stepEnd('b', { finished_at: late })]);
      const times = (await explain(run)).at('step_times');
      const usual = { measured: 5, p50_seconds: 1, p95_seconds: 1 };
      expect(times).to.deep.equal([
        { step: 'a', took_seconds: 1, ...usual, slow: false },
        { step: 'b', took_seconds: 3, ...usual, slow: true },
      ]);
    });

    it('shows the arguments with which a step called its tool, verified by hash and without secrets', async () => {
      const pipeline = [
        { id: 'load', uses: 'echo', with: { of: '${params.shop}' } },
        {
          id: 'send',
          uses: 'http.request',
          for_each: '${steps.load.rows}',
          with: { url: 'http://x.example/${secrets.TOKEN}', body: '${item}' },
        },
      ];
      const task = await runs.makeTask({ payload: { params: { shop: 'north' }, pipeline } });
      const run = await runs.runNow(task);
      const sent = { url: 'http://x.example/***', body: { n: 2 } };
      await runs.failWith(task, run, [
        stepEnd('load', { result: { rows: [{ n: 1 }, { n: 2 }] } }),
        stepEnd('send[1]', { status: 'failed', error: 'x', arguments_hash: argumentsHash(sent) }),
      ]);
      const input = async (step: string, client = caller.client) => {
        const path = `/runs/${run}/explain?step=${encodeURIComponent(step)}`;
        return (await client.get(path)).at('input');
      };
      await explain(run);
      expect(await input('load')).to.deep.equal({
        step: 'load',
        value: { of: 'north' },
        exact: false,
      });
      expect(await input('send[1]')).to.deep.equal({ step: 'send[1]', value: sent, exact: true });
      expect(await input('none')).to.equal(null);
      const reader = await api().signIn(['runs:read']);
      expect(await input('load', reader.client)).to.equal(null);
      expect(JSON.stringify(await input('send[1]'))).not.to.contain(pipelineSecrets['TOKEN']);
    });
  });
}

describeExplanation('over the embedded stores');
describeExplanation('over servers', openStandIns);
