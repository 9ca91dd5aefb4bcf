import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient } from '../../support/api-client.ts';
import {
  credentialsIn,
  endsItsProcessesAtTheEnd,
  ServiceProcess,
  signIn,
} from '../../support/service-process.ts';
import { found } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { Ledger } from '../ledger.ts';

interface Given {
  readonly job_id: string;
  readonly lease: string;
  readonly run_id: string;
  readonly idempotency_key: string;
}

describe('a service that is killed while a worker has a job', function () {
  this.timeout(120_000);
  endsItsProcessesAtTheEnd();
  let directory: TemporaryDirectory;
  let service: ServiceProcess;
  let client: ApiClient;
  let worker: string;

  // Each test kills the service and continues with the next one.
  before(async () => {
    directory = await makeTemporaryDirectory();
    await start();
  });
  after(() => directory.remove());

  /** Starts the service on the same data, with short leases. */
  async function start(): Promise<void> {
    const settings = { SVC_JOB_LEASE_SECONDS: '30', SVC_LEASE_SECONDS: '2' };
    service = await ServiceProcess.start({ SVC_DATA_DIR: directory.path, ...settings });
    client = service.client();
    client = client.as(await signIn(client, credentialsIn(directory.path)));
  }

  async function nextJob(): Promise<Given> {
    const answer = await client.post(`/workers/${worker}/jobs?wait=30`);
    const [job] = answer.at('jobs') as Given[];
    if (job === undefined) throw new Error(`no job: ${answer.text}`);
    return job;
  }

  async function takeJob(): Promise<Given> {
    const tools = [{ name: 'mail.send', description: 'sends', schema: {} }];
    const registered = await client.post('/workers', { name: 'mailer', slots: 1, tools });
    worker = registered.textAt('worker_id');
    const task = await client.post('/tasks', {
      title: 'mails',
      description: 'mails',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: credentialsIn(directory.path).agent_id,
      payload: {
        pipeline: [
          { id: 'mail', uses: 'mail.send', with: { to: 'me' } },
          { id: 'after', uses: 'echo', with: { sent: '${steps.mail}' } },
        ],
      },
    });
    expect(task.status, task.text).to.equal(201);
    await client.post(`/tasks/${task.textAt('id')}/run_now`);
    return nextJob();
  }

  async function succeeds(runId: string): Promise<void> {
    const run = await found(
      async () => {
        const shown = await client.get(`/runs/${runId}`);
        // The view may lack the run for a moment after a restart.
        return typeof shown.at('finished_at') === 'string' ? shown : undefined;
      },
      { limitMs: 30_000, what: 'the run to end' },
    );
    expect(run.at('state'), run.text).to.equal('succeeded');
    expect(run.at('output.steps.after.sent')).to.deep.equal({ n: 1 });
    const events = Ledger.read(directory.path).streams.get(`run-${runId}`) ?? [];
    const ended = events.filter(({ type }) => type === 'RunStepResumed');
    expect(ended).to.have.length(1);
  }

  it('accepts its result after the restart, with the same lease', async () => {
    const job = await takeJob();
    await service.kill();
    await start();
    const { job_id, lease, run_id } = job;
    const beat = await client.post(`/jobs/${job_id}/heartbeat`, { lease });
    expect(beat.json).to.deep.equal({ cancel_requested: false });
    const done = await client.post(`/jobs/${job_id}/complete`, { lease, result: { n: 1 } });
    expect(done.status, done.text).to.equal(200);
    await succeeds(run_id);
  });

  it('offers the job again if it has lost its leases, and rejects the earlier lease', async () => {
    const job = await takeJob();
    await service.kill();
    for (const end of ['', '-wal', '-shm']) {
      rmSync(join(directory.path, `coordination.db${end}`), { force: true });
    }
    await start();
    const { job_id, lease, run_id } = job;
    const late = await client.post(`/jobs/${job_id}/complete`, { lease, result: { n: 0 } });
    expect(late.status, late.text).to.equal(409);
    const again = await nextJob();
    expect(again).to.include({ job_id, run_id, idempotency_key: job.idempotency_key });
    expect(again.lease).to.not.equal(lease);
    const body = { lease: again.lease, result: { n: 1 } };
    expect((await client.post(`/jobs/${job_id}/complete`, body)).status).to.equal(200);
    await succeeds(run_id);
  });

  it('continues the run after a kill directly after the result', async () => {
    const { job_id, lease, run_id } = await takeJob();
    const sent = client.post(`/jobs/${job_id}/complete`, { lease, result: { n: 1 } });
    await sent;
    await service.kill();
    await start();
    await succeeds(run_id);
    const again = await client.post(`/jobs/${job_id}/complete`, { lease, result: { n: 2 } });
    expect(again.status).to.equal(409);
  });
});
