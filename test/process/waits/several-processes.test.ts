import { expect } from 'chai';
import type { ApiClient, ReceivedResponse } from '../../support/api-client.ts';
import { buildService } from '../../support/service-process.ts';
import { found } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { Cluster } from '../cluster.ts';
import { Ledger } from '../ledger.ts';
import { CallbackReceiver } from './callback-receiver.ts';

const TURNS = 15;

describe('a run that waits, with two processes that serve the interface', function () {
  this.timeout(120_000);
  let directory: TemporaryDirectory;
  let cluster: Cluster;
  let receiver: CallbackReceiver;
  /** Executes runs, and ends waits. */
  let first: ApiClient;
  /** Serves requests only. */
  let other: ApiClient;

  before(async () => {
    buildService();
    directory = await makeTemporaryDirectory();
    receiver = await CallbackReceiver.start();
    cluster = new Cluster(['api,projector,scheduler,worker', 'api'], {
      SVC_DATA_DIR: directory.path,
    });
    await cluster.start();
    [first, other] = [cluster.clientOf(0), cluster.clientOf(1)];
  });
  after(async () => {
    await cluster.kill([0, 1]);
    await receiver.close();
    await directory.remove();
  });

  const task = async (...pipeline: readonly object[]): Promise<string> => {
    const made = await first.post('/tasks', {
      title: 'waits',
      description: 'for somebody',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: cluster.credentials?.agent_id,
      max_retries: 0,
      payload: { pipeline },
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  };

  const request = async (taskId: string): Promise<string> =>
    (await first.post(`/tasks/${taskId}/run_now`)).textAt('details.run_id');

  const ended = (runId: string): Promise<ReceivedResponse> =>
    found(
      async () => {
        const run = await other.get(`/runs/${runId}`);
        // The view may not know the run yet.
        return run.status !== 200 || run.at('finished_at') === null ? undefined : run;
      },
      { what: `run ${runId} to end`, limitMs: 20_000 },
    );

  const resumptions = (runId: string): number => {
    const events = Ledger.read(directory.path).streams.get(`run-${runId}`) ?? [];
    return events.filter(({ type }) => type === 'RunStepResumed').length;
  };

  const pending = async (runId: string): Promise<string> =>
    found(async () => {
      const { json } = await other.get(`/approvals?state=pending&run_id=${runId}`);
      const [approval] = json['items'] as readonly { readonly id: string }[];
      return approval?.id;
    });

  it('has its job polled at one process and completed at the other', async () => {
    const tools = [{ name: 'mail.send', description: 'sends', schema: {} }];
    const registered = await first.post('/workers', { name: 'mailer', slots: 1, tools });
    const worker = registered.textAt('worker_id');
    const runId = await request(await task({ id: 'mail', uses: 'mail.send' }));
    const polled = await first.post(`/workers/${worker}/jobs?wait=20`);
    const job = polled.at('jobs.0') as { readonly job_id: string; readonly lease: string };
    const { job_id, lease } = job;
    const beat = await other.post(`/jobs/${job_id}/heartbeat`, { lease, progress: 0.5 });
    expect(beat.status, beat.text).to.equal(200);
    // The job is leased, so no process gives it to another worker.
    expect((await other.post(`/workers/${worker}/jobs?wait=0`)).at('jobs')).to.deep.equal([]);
    const done = await other.post(`/jobs/${job_id}/complete`, { lease, result: { n: 1 } });
    expect(done.status, done.text).to.equal(200);
    const again = await first.post(`/jobs/${job_id}/complete`, { lease, result: { n: 2 } });
    expect(again.status, again.text).to.equal(409);
    const run = await ended(runId);
    expect(run.at('state')).to.equal('succeeded');
    expect(run.at('output.steps.mail')).to.deep.equal({ n: 1 });
    expect(resumptions(runId)).to.equal(1);
  });

  it('accepts the first of two results that two processes receive at once', async () => {
    const tools = [{ name: 'mail.twice', description: 'sends', schema: {} }];
    const registered = await other.post('/workers', { name: 'twice', slots: 1, tools });
    const worker = registered.textAt('worker_id');
    const mail = await task({ id: 'mail', uses: 'mail.twice' });
    for (let turn = 0; turn < TURNS; turn += 1) {
      const runId = await request(mail);
      const polled = await other.post(`/workers/${worker}/jobs?wait=20`);
      const job = polled.at('jobs.0') as { readonly job_id: string; readonly lease: string };
      const answers = await Promise.all(
        [first, other].map((client, n) =>
          client.post(`/jobs/${job.job_id}/complete`, { lease: job.lease, result: { n } }),
        ),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.toSorted()).to.deep.equal([200, 409]);
      const run = await ended(runId);
      expect(run.at('output.steps.mail'), run.text).to.deep.equal({ n: statuses.indexOf(200) });
      expect(resumptions(runId)).to.equal(1);
    }
  });

  it('accepts the first of two callbacks that two processes receive at once', async () => {
    const called = await task(receiver.step);
    for (let turn = 0; turn < TURNS; turn += 1) {
      const seen = receiver.tokens.values.length;
      const runId = await request(called);
      const token = await found(() => receiver.tokens.values[seen]);
      const answers = await Promise.all(
        [first, other].map((client, n) => client.as(null).post(`/callbacks/${token}`, { n })),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.toSorted(), answers.map(({ text }) => text).join()).to.deep.equal([200, 409]);
      const run = await ended(runId);
      expect(run.at('output.steps.called')).to.deep.equal({ n: statuses.indexOf(200) });
      expect(resumptions(runId)).to.equal(1);
    }
  });

  it('accepts the first of two decisions that two processes receive at once', async () => {
    const asks = await task({ id: 'ask', uses: 'approval', with: { message: 'Pay?' } });
    for (let turn = 0; turn < TURNS; turn += 1) {
      const runId = await request(asks);
      const id = await pending(runId);
      const [approved, rejected] = await Promise.all([
        first.post(`/approvals/${id}/approve`, { comment: 'fine' }),
        other.post(`/approvals/${id}/reject`, { comment: 'no' }),
      ]);
      const statuses = [approved.status, rejected.status];
      expect(statuses.toSorted(), approved.text + rejected.text).to.deep.equal([200, 409]);
      const run = await ended(runId);
      const state = approved.status === 200 ? 'succeeded' : 'failed';
      expect(run.at('state')).to.equal(state);
      expect(resumptions(runId)).to.equal(1);
    }
  });

  it('is approved at one process while the other executes another of its steps', async () => {
    const ask = { id: 'ask', uses: 'approval', with: { message: 'Pay?' } };
    const group = { id: 'both', parallel: [ask, receiver.slowStep] };
    const runId = await request(await task(group, { id: 'last', uses: 'echo' }));
    const answer = await receiver.slow.wait();
    const approved = await other.post(`/approvals/${await pending(runId)}/approve`);
    expect(approved.status, approved.text).to.equal(200);
    // Its worker has learned of the decision, and records it while the other step is still running.
    await found(async () => {
      const { json } = await other.get(`/runs/${runId}`);
      const steps = (json['steps'] ?? []) as readonly { readonly step: string }[];
      return json['state'] === 'running' ? steps.find(({ step }) => step === 'ask') : undefined;
    });
    answer();
    const run = await ended(runId);
    expect(run.at('state'), run.text).to.equal('succeeded');
    expect(run.at('output.steps.ask')).to.include({ approved: true });
    expect(resumptions(runId)).to.equal(1);
  });

  it('is either decided or canceled when both are requested at once', async () => {
    const asks = await task({ id: 'ask', uses: 'approval', with: { message: 'Pay?' } });
    for (let turn = 0; turn < TURNS; turn += 1) {
      const runId = await request(asks);
      const id = await pending(runId);
      const [approved, canceled] = await Promise.all([
        first.post(`/approvals/${id}/approve`),
        other.post(`/runs/${runId}/cancel`),
      ]);
      expect([200, 409]).to.include(approved.status);
      expect([200, 409]).to.include(canceled.status);
      const run = await ended(runId);
      // An accepted decision may still be followed by the cancellation of its run, but not the reverse.
      if (approved.status === 409) expect(run.at('state')).to.equal('canceled');
      if (canceled.status === 409) expect(run.at('state')).to.equal('succeeded');
      expect(resumptions(runId)).to.equal(1);
    }
  });

  it('is ended by an event that the other process publishes', async () => {
    const waits = { topic: 'orders.paid', if: "event.payload.order == 'b'" };
    const runId = await request(await task({ id: 'paid', uses: 'wait.event', with: waits }));
    await found(async () => {
      const { json } = await other.get(`/runs/${runId}`);
      return json['state'] === 'waiting' ? json : undefined;
    });
    for (const order of ['a', 'b', 'b']) {
      await other.post('/events', {
        topic: 'orders.paid',
        payload: { order },
        source_agent_id: cluster.credentials?.agent_id,
      });
    }
    const run = await ended(runId);
    expect(run.at('output.steps.paid.payload')).to.deep.equal({ order: 'b' });
    expect(resumptions(runId)).to.equal(1);
  });
});
