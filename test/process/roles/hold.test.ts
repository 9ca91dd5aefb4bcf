import { expect } from 'chai';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { StepServer } from '../step-server.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a hold on several processes', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let target: StepServer;
  before(async () => {
    buildService();
    target = await StepServer.start();
  });
  after(() => target.close());

  const start = (roles: string): Promise<ServiceProcess> =>
    ServiceProcess.start({
      SVC_DATA_DIR: directory(),
      SVC_ROLES: roles,
      SVC_HTTP_ALLOW_PRIVATE: 'true',
    });

  it('prevents fires and run starts, also after a kill, until it is released', async () => {
    const api = await start('api,projector');
    let worker = await start('scheduler,worker');
    const { agent_id } = credentialsIn(directory());
    const client = api.client(await signIn(api.client(), credentialsIn(directory())));
    const step = { uses: 'http.request', with: { url: target.heldUrl }, timeout_seconds: 600 };
    const makeTask = async (fields: object): Promise<string> => {
      const made = await client.post('/tasks', {
        title: 'held',
        description: 'waits',
        created_by: agent_id,
        payload: { pipeline: [step] },
        ...fields,
      });
      expect(made.status, made.text).to.equal(201);
      return made.textAt('id');
    };
    const stateOf = async (run: string): Promise<unknown> =>
      (await client.get(`/runs/${run}`)).at('state');
    const runsOf = async (task: string): Promise<number> =>
      Number((await client.get(`/runs?task_id=${task}`)).at('total'));

    const byHand = await makeTask({ schedule_kind: 'event', schedule_expr: null });
    const running = (await client.post(`/tasks/${byHand}/run_now`)).textAt('details.run_id');
    await eventually(async () => (await stateOf(running)) === 'running');
    const held = await client.post('/operations/hold', { reason: 'a test' });
    expect(held.status, held.text).to.equal(200);
    const often = await makeTask({
      schedule_kind: 'cron',
      schedule_expr: '* * * * * *',
      misfire_policy: 'latest',
      misfire_grace_seconds: 0,
    });
    const queued = (await client.post(`/tasks/${byHand}/run_now`)).textAt('details.run_id');
    // Running work continues to its end.
    target.release();
    await eventually(async () => (await stateOf(running)) === 'succeeded', { limitMs: 20_000 });
    expect(await stateOf(queued)).to.equal('queued');
    await worker.kill();
    worker = await start('scheduler,worker');
    const health = await client.get('/health');
    const checks = health.at('checks') as { readonly name: string; readonly message: string }[];
    expect(checks.find(({ name }) => name === 'scheduler')?.message).to.match(
      /^on hold since .*: a test$/,
    );
    expect(await stateOf(queued)).to.equal('queued');
    expect(await runsOf(often)).to.equal(0);
    await client.post('/operations/release');
    await eventually(
      async () => {
        expect(await stateOf(queued)).to.equal('succeeded');
        expect(await runsOf(often)).to.be.greaterThan(1);
      },
      { limitMs: 20_000 },
    );
    expect((await worker.terminate()).code).to.equal(0);
    expect((await api.terminate()).code).to.equal(0);
  });
});
