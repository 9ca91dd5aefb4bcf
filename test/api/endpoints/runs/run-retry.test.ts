import { expect } from 'chai';
import type { StepEnd } from '../../../../domain/events/catalogue.ts';
import { streams } from '../../../../domain/streams.ts';
import { stepEnd } from '../../../projections/recorded.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { FailedRuns, start } from './failed-runs.ts';

describe('a retry over HTTP', () => {
  const api = useRunningApi();
  let caller: SignedIn;
  let runs: FailedRuns;
  beforeEach(async () => {
    caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read']);
    runs = new FailedRuns(api(), caller);
  });

  const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

  it('is a new run that keeps the finished steps of the failed one', async () => {
    const task = await runs.makeTask();
    const run = await runs.failed(task);
    const answer = await caller.client.post(`/runs/${run.toUpperCase()}/retry`);
    expect(answer.status, answer.text).to.equal(200);
    const retry = answer.textAt('details.run_id');
    expect(answer.json).to.deep.equal({
      success: true,
      message: 'the retry is requested',
      details: { run_id: retry, retry_of: run, task_id: task },
    });
    const shown = await caller.client.get(`/runs/${retry}`);
    expect(shown.json).to.include({ state: 'queued', trigger: 'manual', retry_of: run });
    expect(shown.json).to.include({ attempt: 0, retried_by: null });
    const steps = shown.at('steps') as StepEnd[];
    expect(steps.map(({ step }) => step)).to.deep.equal(['a', 'b']);
    expect((await caller.client.get(`/runs/${run}`)).json).to.include({
      state: 'failed',
      success: false,
      retried_by: retry,
    });
  });

  it("uses the failed run's pinned revision, or the present one if it runs from the start", async () => {
    const task = await runs.makeTask();
    const run = await runs.failed(task);
    await caller.client.put(`/tasks/${task}`, { priority: 2 });
    const onwards = await caller.client.post(`/runs/${run}/retry?from=failed_step`);
    expect(await runs.requestOf(onwards.textAt('details.run_id'))).to.include({
      task_revision: 0,
      priority: 5,
    });
    const anew = await caller.client.post(`/runs/${run}/retry?from=start`);
    const request = await runs.requestOf(anew.textAt('details.run_id'));
    expect(request).to.include({ task_revision: 1, priority: 2, retry_of: run });
    expect(request.prior_steps).to.deep.equal([]);
  });

  it('is refused for runs that have not failed', async () => {
    const task = await runs.makeTask();
    const run = await runs.runNow(task);
    const refused = async (state: string): Promise<void> => {
      const answer = await caller.client.post(`/runs/${run}/retry`);
      expect(answer.status, state).to.equal(409);
      expect(answer.at('error')).to.equal('conflict');
      expect(answer.at('details')).to.deep.equal({ state });
    };
    await refused('queued');
    await api().append(streams.run(run), [start]);
    await refused('running');
    const failure = { attempt: 1, error: 'e', step: null, retry_at: '2090-01-01T00:00:00.000Z' };
    await api().append(streams.run(run), [{ type: 'RunAttemptFailed', data: failure }]);
    await refused('retrying');
    await caller.client.post(`/runs/${run}/cancel`);
    await refused('canceled');
    expect(await api().store.readStream(streams.run(run))).to.have.length(4);
  });

  it("is allowed for the task's owner and for admins", async () => {
    const run = await runs.failed(await runs.makeTask());
    const other = await api().signIn(['tasks:write', 'runs:read']);
    const refused = await other.client.post(`/runs/${run}/retry`);
    expect(refused.status).to.equal(403);
    expect((await api().admin.client.post(`/runs/${run}/retry`)).status).to.equal(200);
  });

  it('runs for a paused task, but not for a canceled one', async () => {
    const task = await runs.makeTask();
    const run = await runs.failed(task);
    await caller.client.post(`/tasks/${task}/pause`);
    expect((await caller.client.post(`/runs/${run}/retry`)).status).to.equal(200);
    await caller.client.post(`/tasks/${task}/cancel`);
    const refused = await caller.client.post(`/runs/${run}/retry`);
    expect(refused.status).to.equal(409);
    expect(refused.at('details.status')).to.equal('canceled');
  });

  it('is not a duplicate of the retried run', async () => {
    const task = await runs.makeTask({ dedupe_key: 'one a day', dedupe_window_seconds: 86_400 });
    const run = await runs.failed(task);
    const retry = await caller.client.post(`/runs/${run}/retry`);
    expect(retry.at('details.run_id')).to.not.equal(run);
    expect((await runs.requestOf(retry.textAt('details.run_id'))).retry_of).to.equal(run);
  });

  it('does not run while another run is unfinished if the overlap policy forbids it', async () => {
    const task = await runs.makeTask({ overlap_policy: 'skip' });
    const run = await runs.failed(task);
    const running = await runs.runNow(task);
    const answer = await caller.client.post(`/runs/${run}/retry`);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.at('details.skip_reason')).to.equal('overlap');
    expect(answer.textAt('message')).to.contain(running);
    const shown = await caller.client.get(`/runs/${answer.textAt('details.run_id')}`);
    expect(shown.json).to.include({ state: 'skipped', skip_reason: 'overlap', retry_of: run });
  });

  it('keeps the nominal time and the event of the retried run', async () => {
    const task = await runs.makeTask();
    const event = {
      id: task,
      topic: 'a.b',
      payload: { n: 1 },
      source_agent_id: caller.id,
      published_at: '2026-03-01T09:00:00.000Z',
    };
    const run = await runs.runNow(task);
    const asked = await runs.requestOf(run);
    const early = crypto.randomUUID();
    const scheduled_for = '2026-03-01T09:00:00.000Z';
    const data = { ...asked, trigger: 'event' as const, scheduled_for, event };
    await api().append(streams.run(early), [{ type: 'RunRequested', data }]);
    await runs.failWith(task, early, []);
    const retry = await caller.client.post(`/runs/${early}/retry`);
    expect(await runs.requestOf(retry.textAt('details.run_id'))).to.deep.include({
      scheduled_for,
      event,
      trigger: 'manual',
    });
  });

  it('names the location of results that are too large for one event', async () => {
    const task = await runs.makeTask();
    const run = await runs.runNow(task);
    const large = ['a', 'b'].map((step) => stepEnd(step, { result: 'x'.repeat(200 * 1024) }));
    for (const data of large) {
      await api().append(streams.run(run), [{ type: 'RunStepCompleted', data }]);
    }
    await runs.failWith(task, run, []);
    const retry = await caller.client.post(`/runs/${run}/retry`);
    expect(retry.status, retry.text).to.equal(200);
    expect(await runs.requestOf(retry.textAt('details.run_id'))).to.deep.include({
      prior_steps: [],
      prior_results: { run_id: run, steps: 2 },
    });
  });

  it('is made once for an Idempotency-Key, even if its request was interrupted', async () => {
    const run = await runs.failed(await runs.makeTask());
    const path = `/runs/${run}/retry`;
    api().store.failNext('run-', 'before', 'RunRequested');
    expect((await caller.client.post(path, undefined, keyed('once'))).status).to.equal(503);
    const second = await caller.client.post(path, undefined, keyed('once'));
    expect(second.status, second.text).to.equal(200);
    const third = await caller.client.post(path, undefined, keyed('once'));
    expect(third.text).to.equal(second.text);
    const events = await api().store.readStream(streams.run(run));
    expect(events.filter(({ type }) => type === 'RunRetried')).to.have.length(1);
    expect((await runs.requestOf(second.textAt('details.run_id'))).retry_of).to.equal(run);
  });

  for (const [prefix, type] of [
    ['run-', 'RunRetried'],
    // The slot of the failed run, and its own.
    ['key-', undefined],
    ['run-', 'RunRequested'],
    ['idem-', 'CommandAnswered'],
  ] as const) {
    for (const when of ['before', 'after'] as const) {
      it(`is completed by a repetition after an interruption ${when} ${type ?? 'its key'}`, async () => {
        const run = await runs.failed(await runs.makeTask({ overlap_policy: 'queue' }));
        const path = `/runs/${run}/retry`;
        const key = keyed(`${prefix}${type ?? ''} ${when}`);
        api().store.failNext(prefix, when, type);
        const first = await caller.client.post(path, undefined, key);
        // After a lost response, a repeated decision finds its event in the log.
        expect(first.status).to.be.oneOf(when === 'before' ? [503] : [200, 503]);
        const second = await caller.client.post(path, undefined, key);
        expect([200, 503]).to.include(first.status);
        expect(second.status, second.text).to.equal(200);
        const retry = second.textAt('details.run_id');
        expect(await runs.requestOf(retry)).to.include({ retry_of: run });
        const events = await api().store.readStream(streams.run(run));
        expect(events.filter((event) => event.type === 'RunRetried')).to.have.length(1);
        expect(await api().store.readStream(streams.run(retry))).to.have.length(1);
      });
    }
  }
});
