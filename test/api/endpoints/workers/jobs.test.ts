import { expect } from 'chai';
import { connect } from 'node:net';
import { streams } from '../../../../domain/streams.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { eventually, found } from '../../../support/signals.ts';
import { newTool, OpenJobs, type GivenJob, type TestWorker } from './open-jobs.ts';

const UNKNOWN = '11111111-1111-4111-8111-111111111111';

describe('jobs over HTTP', () => {
  const api = useRunningApi();
  let open: OpenJobs;
  before(async () => {
    open = await OpenJobs.make(api());
  });
  const isWaiting = () => found(() => (api().jobs.waiting > 0 ? true : undefined));

  describe('a worker that asks for jobs', () => {
    it('gets a job with everything it needs', async () => {
      const tool = newTool();
      const worker = await open.worker([tool]);
      const { runId, jobId } = await open.open({ tool, arguments: { to: 'me' }, tries: 3 });
      const job = await worker.job();
      expect(job).to.deep.include({
        job_id: jobId,
        run_id: runId,
        step: 'one',
        tool,
        arguments: { to: 'me' },
        idempotency_key: `${runId}:one`,
        attempt: 3,
        traceparent: null,
      });
      const left = Date.parse(job.deadline) - api().clock.now();
      expect(left).to.be.within(50_000, 60_000);
      expect(await worker.jobs()).to.deep.equal([]);
    });

    it('waits until a job fits it', async () => {
      const tool = newTool();
      const worker = await open.worker([tool]);
      const waiting = worker.job('?wait=30');
      await isWaiting();
      const { jobId } = await open.open({ tool });
      expect((await waiting).job_id).to.equal(jobId);
    });

    it('gets nothing once its waiting time is over', async () => {
      const worker = await open.worker([newTool()]);
      expect(await worker.jobs('?wait=0.05')).to.deep.equal([]);
    });

    it('gets jobs by priority, then by age, and no more than it asks for', async () => {
      const [one, two] = [newTool(), newTool()];
      const worker = await open.worker([one, two]);
      const late = await open.open({ tool: one, priority: 9 });
      const first = await open.open({ tool: one, priority: 5 });
      const second = await open.open({ tool: two, priority: 5 });
      const urgent = await open.open({ tool: two, priority: 1 });
      await eventually(() => api().jobs.size >= 4);
      const got = await worker.jobs('?max=3&wait=5');
      const expected = [urgent, first, second].map(({ jobId }) => jobId);
      expect(got.map(({ job_id }) => job_id)).to.deep.equal(expected);
      expect((await worker.job()).job_id).to.equal(late.jobId);
    });

    it('gets only jobs of its tools and labels', async () => {
      const tool = newTool();
      const plain = await open.worker([tool], { labels: { region: 'us' } });
      const european = await open.worker([tool], { labels: { region: 'eu', gpu: 'yes' } });
      const { jobId } = await open.open({ tool, labels: { region: 'eu' } });
      expect((await european.job()).job_id).to.equal(jobId);
      await open.open({ tool, labels: { region: 'eu', gpu: 'no' } });
      await open.open({ tool: newTool() });
      expect(await plain.jobs('?wait=0.05')).to.deep.equal([]);
      expect(await european.jobs('?wait=0.05')).to.deep.equal([]);
      const unlabeled = await open.open({ tool });
      expect((await plain.job()).job_id).to.equal(unlabeled.jobId);
    });

    it('gets only jobs whose arguments fit its own schema', async () => {
      const name = newTool();
      const strict = {
        name,
        description: 'newer',
        schema: { type: 'object', required: ['address'] },
      };
      const old = await open.worker([name]);
      const newer = await open.worker([strict]);
      const { jobId } = await open.open({ tool: name, arguments: { to: 'me' } });
      expect(await newer.jobs('?wait=0.05')).to.deep.equal([]);
      expect((await old.job()).job_id).to.equal(jobId);
      const fitting = await open.open({ tool: name, arguments: { address: 'me' } });
      expect((await newer.job()).job_id).to.equal(fitting.jobId);
    });

    it('gets no job before its earliest start', async () => {
      const tool = newTool();
      const worker = await open.worker([tool]);
      const notBefore = api().clock.now() + 3_000;
      await open.open({ tool, notBefore });
      expect(await worker.jobs()).to.deep.equal([]);
      await worker.job('?wait=20');
      expect(api().clock.now()).to.be.at.least(notBefore);
    });

    it('takes no job if its client has disconnected', async () => {
      const tool = newTool();
      const worker = await open.worker([tool]);
      const { hostname, port } = new URL(api().url);
      const socket = connect(Number(port), hostname);
      const head = [
        `POST /workers/${worker.id}/jobs?wait=30 HTTP/1.1`,
        `Host: ${hostname}:${port}`,
        `Authorization: Bearer ${String(worker.agent.client.token)}`,
        'Content-Length: 0',
      ];
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      await isWaiting();
      socket.destroy();
      await eventually(() => api().jobs.waiting === 0);
      const { jobId } = await open.open({ tool });
      expect((await worker.job()).job_id).to.equal(jobId);
    });

    it('shares the jobs with other workers, and no job is given twice', async () => {
      const tool = newTool();
      const workers = await Promise.all([1, 2, 3].map(() => open.worker([tool])));
      const polls = workers.map((worker) => worker.jobs('?wait=1&max=100'));
      await Promise.all(Array.from({ length: 20 }, () => open.open({ tool })));
      const got: GivenJob[] = (await Promise.all(polls)).flat();
      for (const worker of workers) got.push(...(await worker.jobs('?wait=0.2&max=100')));
      expect(new Set(got.map(({ job_id }) => job_id)).size).to.equal(20);
      expect(got).to.have.length(20);
    });
  });

  async function taken(): Promise<{
    readonly worker: TestWorker;
    readonly job: GivenJob;
    readonly runId: string;
  }> {
    const tool = newTool();
    const worker = await open.worker([tool]);
    const { runId } = await open.open({ tool });
    return { worker, job: await worker.job(), runId };
  }

  describe('a result', () => {
    it('ends the wait of the step, and names the worker', async () => {
      const { worker, job, runId } = await taken();
      const result = { sent: true };
      const done = await worker.say(job, 'complete', { lease: job.lease, result });
      expect(done.status, done.text).to.equal(200);
      const [resumed] = await open.eventsOf(runId, 'RunStepResumed');
      expect(resumed).to.deep.equal({
        step: 'one',
        wait_id: job.job_id,
        by: { kind: 'job', id: worker.id, agent_id: worker.agent.id },
        result,
      });
    });

    it('counts once; a second one is rejected and recorded', async () => {
      const { worker, job, runId } = await taken();
      await worker.say(job, 'complete', { lease: job.lease, result: 1 });
      const again = await worker.say(job, 'complete', { lease: job.lease, result: 2 });
      expect(again.status).to.equal(409);
      const failed = await worker.say(job, 'fail', {
        lease: job.lease,
        error: 'x',
        retryable: true,
      });
      expect(failed.status).to.equal(409);
      expect(await open.eventsOf(runId, 'RunStepResumed')).to.have.length(1);
      await found(async () => {
        const query = `actor=${worker.agent.id}&outcome=refused`;
        const { text } = await api().admin.client.get(`/audit?${query}`);
        const all = ['complete', 'fail'].every((what) => text.includes(`/jobs/{job_id}/${what}`));
        return all ? text : undefined;
      });
    });

    it('may be the error of a failed try', async () => {
      const { worker, job, runId } = await taken();
      const body = { lease: job.lease, error: 'the mailbox is full', retryable: true };
      expect((await worker.say(job, 'fail', body)).status).to.equal(200);
      const [resumed] = await open.eventsOf(runId, 'RunStepResumed');
      expect(resumed).to.include({ error: 'the mailbox is full', retryable: true });
    });

    it('needs the present lease', async () => {
      const { worker, job, runId } = await taken();
      for (const lease of ['x', `${runId}.x`]) {
        const answer = await worker.say(job, 'complete', { lease, result: 1 });
        expect(answer.status).to.equal(409);
      }
      const other = await open.worker([newTool()]);
      const stolen = await other.say(job, 'complete', { lease: job.lease, result: 1 });
      expect(stolen.status).to.equal(409);
      expect(await open.eventsOf(runId, 'RunStepResumed')).to.have.length(0);
    });

    it('for a job that never existed gets 404', async () => {
      const { worker, job } = await taken();
      const answer = await worker.say({ job_id: UNKNOWN }, 'complete', {
        lease: job.lease,
        result: 1,
      });
      expect(answer.status).to.equal(404);
    });

    it('over 1 MiB gets 413, and a smaller but large one becomes an artifact', async () => {
      const { worker, job, runId } = await taken();
      const { lease } = job;
      const tooLarge = await worker.say(job, 'complete', { lease, result: 'x'.repeat(1_100_000) });
      expect(tooLarge.status).to.equal(413);
      const large = await worker.say(job, 'complete', { lease, result: 'x'.repeat(900_000) });
      expect(large.status, large.text.slice(0, 200)).to.equal(200);
      const [resumed] = await open.eventsOf(runId, 'RunStepResumed');
      expect(resumed?.['result']).to.have.keys(['artifact', 'size_bytes', 'sha256']);
      expect(resumed?.['result']).to.include({ size_bytes: 900_002 });
    });

    it('after the run was canceled is rejected, and the worker is told to stop', async () => {
      const { worker, job, runId } = await taken();
      await api().admin.client.post(`/runs/${runId}/cancel`);
      const beat = await worker.say(job, 'heartbeat', { lease: job.lease });
      expect(beat.json).to.deep.equal({ cancel_requested: true });
      const late = await worker.say(job, 'complete', { lease: job.lease, result: 1 });
      expect(late.status).to.equal(409);
      expect(late.at('details.resumed_by') ?? null).to.be.oneOf([null, 'stopped']);
    });
  });

  describe('many results', () => {
    it('each get their own outcome', async () => {
      const tool = newTool();
      const worker = await open.worker([tool]);
      for (let n = 0; n < 4; n += 1) await open.open({ tool });
      await eventually(() => api().jobs.size >= 4);
      const jobs = await worker.jobs('?max=4&wait=5');
      expect(jobs).to.have.length(4);
      const [one, two, three, four] = jobs as [GivenJob, GivenJob, GivenJob, GivenJob];
      await worker.say(three, 'complete', { lease: three.lease, result: 1 });
      const answer = await worker.agent.client.post(`/workers/${worker.id}/results`, {
        results: [
          { job_id: one.job_id, lease: one.lease, result: { n: 1 } },
          { job_id: two.job_id, lease: two.lease, error: 'no', retryable: false },
          { job_id: three.job_id, lease: three.lease, result: 2 },
          { job_id: four.job_id, lease: 'another', result: 2 },
          { job_id: UNKNOWN, lease: 'another', result: 2 },
        ],
      });
      expect(answer.status, answer.text).to.equal(200);
      const statuses = (answer.at('results') as { status: number }[]).map(({ status }) => status);
      expect(statuses).to.deep.equal([200, 200, 409, 409, 404]);
      expect(answer.at('results.2.error')).to.equal('conflict');
      const audit = await found(async () => {
        const read = await api().admin.client.get(`/audit?actor=${worker.agent.id}`);
        return read.text.includes('/results') ? read : undefined;
      });
      expect(audit.text).to.contain('"status":409');
    });

    it('of a replaced worker each get their own outcome, as their leases are still valid', async () => {
      const tool = newTool();
      const worker = await open.worker([tool], { name: 'replaced' });
      await open.open({ tool });
      const job = await worker.job();
      await open.worker([tool], { name: 'replaced', agent: worker.agent });
      const results = [
        { job_id: job.job_id, lease: job.lease, result: 1 },
        { job_id: UNKNOWN, lease: 'another', result: 2 },
      ];
      const path = `/workers/${worker.id}/results`;
      const answer = await worker.agent.client.post(path, { results });
      expect(answer.status, answer.text).to.equal(200);
      const statuses = (answer.at('results') as { status: number }[]).map(({ status }) => status);
      expect(statuses).to.deep.equal([200, 404]);
      const stranger = await api().signIn(['jobs:work']);
      expect((await stranger.client.post(path, { results })).status).to.equal(403);
    });

    it('of one run are written together', async () => {
      const { worker, job } = await taken();
      const body = { results: [{ job_id: job.job_id, lease: job.lease, result: 1 }] };
      const twice = { results: [...body.results, ...body.results] };
      const answer = await worker.agent.client.post(`/workers/${worker.id}/results`, twice);
      const statuses = (answer.at('results') as { status: number }[]).map(({ status }) => status);
      expect(statuses).to.deep.equal([200, 409]);
    });

    it('are at most 100', async () => {
      const worker = await open.worker([newTool()]);
      const results = Array.from({ length: 101 }, () => ({
        job_id: UNKNOWN,
        lease: 'x',
        result: 1,
      }));
      const answer = await worker.agent.client.post(`/workers/${worker.id}/results`, { results });
      expect(answer.status).to.equal(400);
    });
  });

  describe('a heartbeat', () => {
    it('shows progress and log lines at once, masked', async () => {
      const payload = {
        pipeline: [
          { id: 'one', uses: 'http.request', with: { url: 'http://a/', body: '${secrets.TOKEN}' } },
        ],
      };
      const secretive = await OpenJobs.make(api(), payload);
      const tool = newTool();
      const worker = await secretive.worker([tool]);
      const { runId } = await secretive.open({ tool });
      const job = await worker.job();
      const log = [{ level: 'info', message: 'used hush-hush-7', data: { n: 1 } }];
      const beat = await worker.say(job, 'heartbeat', { lease: job.lease, progress: 0.25, log });
      expect(beat.status, beat.text).to.equal(200);
      expect(beat.json).to.deep.equal({ cancel_requested: false });
      const run = await open.run(runId, (each) => each.at('waits.0.progress') === 0.25);
      expect(run.at('log.0')).to.deep.include({ message: 'used ***', step: 'one', level: 'info' });
      const done = { lease: job.lease, result: { key: 'hush-hush-7' } };
      await worker.say(job, 'complete', done);
      const [resumed] = await open.eventsOf(runId, 'RunStepResumed');
      expect(resumed?.['result']).to.deep.equal({ key: '***' });
    });

    it('appends nothing if the worker has no news', async () => {
      const { worker, job, runId } = await taken();
      const before = await api().store.readStream(streams.run(runId));
      await worker.say(job, 'heartbeat', { lease: job.lease });
      expect(await api().store.readStream(streams.run(runId))).to.have.length(before.length);
    });

    it('keeps 50 lines of a step, over all heartbeats', async () => {
      const { worker, job, runId } = await taken();
      const log = Array.from({ length: 30 }, (_, n) => ({ level: 'info', message: String(n) }));
      for (let n = 0; n < 3; n += 1) await worker.say(job, 'heartbeat', { lease: job.lease, log });
      const run = await open.run(runId, (each) => (each.at('log') as []).length > 50);
      expect(run.at('log')).to.have.length(51);
      expect(run.at('log.50.message')).to.equal('the log of a step is limited to 50 lines');
    });

    it('with another lease is rejected', async () => {
      const { worker, job } = await taken();
      expect((await worker.say(job, 'heartbeat', { lease: 'x' })).status).to.equal(409);
      const unknown = await worker.say({ job_id: UNKNOWN }, 'heartbeat', { lease: 'x' });
      expect(unknown.status).to.equal(404);
    });

    it('rejects a progress over 1', async () => {
      const { worker, job } = await taken();
      const answer = await worker.say(job, 'heartbeat', { lease: job.lease, progress: 2 });
      expect(answer.status).to.equal(400);
    });
  });

  describe('a run whose job waits', () => {
    const reasonOf = async (runId: string): Promise<unknown> =>
      (await open.run(runId, (each) => each.at('waits.0.kind') === 'job')).at('waits.0.reason');

    it('says that no worker offers the tool', async () => {
      const tool = newTool();
      const { runId } = await open.open({ tool });
      expect(await reasonOf(runId)).to.equal(`no worker offers ${tool}`);
    });

    it('says that no worker has the labels', async () => {
      const tool = newTool();
      await open.worker([tool]);
      const { runId } = await open.open({ tool, labels: { region: 'eu' } });
      const reason = `no worker that offers ${tool} has the labels region=eu`;
      expect(await reasonOf(runId)).to.equal(reason);
    });

    it('says that all workers are busy, or which one is doing it', async () => {
      const tool = newTool();
      const worker = await open.worker([tool], { name: 'mailer' });
      const { runId } = await open.open({ tool });
      expect(await reasonOf(runId)).to.equal(`all workers that offer ${tool} are busy`);
      await worker.job();
      expect(await reasonOf(runId)).to.equal('worker mailer is doing it');
    });
  });
});
