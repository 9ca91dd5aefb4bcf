import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient } from '../../support/api-client.ts';
import {
  credentialsIn,
  endsItsProcessesAtTheEnd,
  ServiceProcess,
  signIn,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  useTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { endsItsWorkers, WorkerProcess } from './worker-process.ts';

const begun = (line: string): boolean => line.startsWith('begun ');

describe('a worker process of your own', function () {
  this.timeout(120_000);
  endsItsWorkers();
  endsItsProcessesAtTheEnd();
  const directory = useTemporaryDirectory();
  /** The data of the service that most tests share. */
  let shared: TemporaryDirectory;
  let service: ServiceProcess;
  /** A service with longer leases, and its data. */
  let patient: ServiceProcess;
  let patientData: TemporaryDirectory;
  let agents = 0;
  const shortLease = { SVC_JOB_LEASE_SECONDS: '2', SVC_JOB_HEARTBEAT_SECONDS: '1' };
  const longLease = { SVC_JOB_LEASE_SECONDS: '30', SVC_JOB_HEARTBEAT_SECONDS: '1' };

  before(async () => {
    shared = await makeTemporaryDirectory();
    service = await ServiceProcess.start({ SVC_DATA_DIR: shared.path, ...shortLease });
    patientData = await makeTemporaryDirectory();
    patient = await ServiceProcess.start({ SVC_DATA_DIR: patientData.path, ...longLease });
  });
  after(() => Promise.all([shared.remove(), patientData.remove()]));

  /** An agent for workers, and a file that ends their jobs. */
  async function setUp(on = service, data = shared.path) {
    const credentials = credentialsIn(data);
    const client = on.client(await signIn(on.client(), credentials));
    const agent = { name: `works ${(agents += 1)}`, scopes: ['jobs:work'] };
    const id = (await client.post('/agents', agent)).textAt('id');
    const secret = (await client.post(`/agents/${id}/credentials`)).textAt('agent_secret');
    const start = (): Promise<WorkerProcess> => WorkerProcess.start(on.address, { id, secret });
    const until = join(directory(), 'until');
    const release = (): void => writeFileSync(until, '');
    const run = async (tool: string): Promise<string> => {
      const task = await client.post('/tasks', {
        title: 'Job',
        description: 'of a worker',
        schedule_kind: 'event',
        schedule_expr: 'never.published',
        created_by: credentials.agent_id,
        max_retries: 0,
        payload: { pipeline: [{ id: 'held', uses: tool, with: { until } }] },
      });
      return (await client.post(`/tasks/${task.textAt('id')}/run_now`)).textAt('details.run_id');
    };
    return { client, credentials, start, release, run };
  }

  /** On a service that takes no job from a worker that a busy machine delays. */
  const setUpWithLongLease = () => setUp(patient, patientData.path);

  it('is killed during a job, which another one then gets with the same key', async () => {
    const { client, start, release, run } = await setUp();
    const first = await start();
    const id = await run('test.hold');
    expect(await first.lines.wait(begun)).to.equal(`begun ${id}:held 1`);
    const second = await start();
    await first.kill();
    expect(await second.lines.wait(begun)).to.equal(`begun ${id}:held 1`);
    release();
    const ended = await endOf(client, id);
    expect(ended).to.deep.include({ state: 'succeeded', output: outputOf(second) });
  });

  it('delivers the results of jobs that it did while the service was down', async () => {
    const data = join(directory(), 'data');
    const settings = { SVC_DATA_DIR: data, ...longLease };
    const first = await ServiceProcess.start(settings);
    const { start, release, run, credentials } = await setUp(first, data);
    const worker = await start();
    const id = await run('test.hold');
    await worker.lines.wait(begun);
    const port = new URL(first.address).port;
    await first.kill();
    release();
    await worker.log.wait((line) => line.includes('could not send results; retrying'));
    const again = await ServiceProcess.start({ ...settings, SVC_PORT: port });
    const client = again.client(await signIn(again.client(), credentials));
    const ended = await endOf(client, id);
    expect(ended).to.deep.include({ state: 'succeeded', output: outputOf(worker) });
    expect(worker.lines.values.filter(begun)).to.have.lengthOf(1);
    await again.kill();
  });

  it('is paused for longer than its lease, and its late result is rejected', async () => {
    const { client, start, release, run } = await setUp();
    const first = await start();
    const id = await run('test.stubborn');
    await first.lines.wait(begun);
    const second = await start();
    first.signal('SIGSTOP');
    expect(await second.lines.wait(begun)).to.equal(`begun ${id}:held 1`);
    release();
    const ended = await endOf(client, id);
    expect(ended).to.deep.include({ state: 'succeeded', output: outputOf(second) });
    first.signal('SIGCONT');
    await first.lines.wait((line) => line === 'done');
    await first.log.wait((line) => line.includes('dropped the result of a job'));
    expect(await endOf(client, id)).to.deep.equal(ended);
    const refused = await found(
      async () => {
        const { json } = await client.get('/audit?outcome=refused');
        const items = json['items'] as readonly { readonly refusal: object }[];
        return items.map(({ refusal }) => refusal)[0];
      },
      { what: 'the late result to be recorded', limitMs: 30_000 },
    );
    expect(refused).to.include({ status: 409, code: 'conflict' });
    expect(refused)
      .to.have.property('path')
      .that.matches(/^\/jobs\/[0-9a-f-]{36}$/);
    // The worker continues to work.
    const next = await run('test.hold');
    await second.kill();
    expect(await endOf(client, next)).to.include({ state: 'succeeded' });
  });

  it('learns that a run was canceled', async () => {
    const { client, start, run } = await setUpWithLongLease();
    const worker = await start();
    const id = await run('test.hold');
    await worker.lines.wait(begun);
    await client.post(`/runs/${id}/cancel`);
    await worker.lines.wait((line) => line === 'aborted canceled');
    expect(await endOf(client, id)).to.include({ state: 'canceled' });
  });

  it('finishes its job before it ends on SIGTERM, and gets no other job', async () => {
    const { client, start, release, run } = await setUpWithLongLease();
    const worker = await start();
    const id = await run('test.hold');
    await worker.lines.wait(begun);
    worker.signal('SIGTERM');
    await eventually(
      async () => (await client.get('/workers?state=drained')).at('items.0.name') !== undefined,
      { what: 'the worker to be drained' },
    );
    release();
    expect(await worker.ended()).to.equal(0);
    expect(await endOf(client, id)).to.deep.include({
      state: 'succeeded',
      output: outputOf(worker),
    });
  });
});

function outputOf({ pid }: WorkerProcess): object {
  return {
    steps: { held: { pid } },
    summary: { total_steps: 1, executed_steps: 1, skipped_steps: 0 },
  };
}

/** The run once it has ended. */
function endOf(client: ApiClient, id: string): Promise<Readonly<Record<string, unknown>>> {
  return found(
    async () => {
      const { json } = await client.get(`/runs/${id}`);
      return ['succeeded', 'failed', 'canceled'].includes(String(json['state'])) ? json : undefined;
    },
    { what: `run ${id} to end`, limitMs: 30_000 },
  );
}
