import { expect } from 'chai';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Servers } from '../servers.ts';

/** Milliseconds without a read; several times as long as a subscription may lack an event. */
const IDLE_MS = 7_000;

describe('a process whose log is in EventStoreDB', function () {
  this.timeout(120_000);
  const directory = useTemporaryDirectory();
  endsItsProcesses();
  let servers: Servers;
  beforeEach(async () => {
    servers = await Servers.start();
  });
  afterEach(() => servers.stop());

  it('has one subscription in all roles, and reads no page of the log while it is idle', async () => {
    const { settings } = servers;
    const service = await ServiceProcess.start({ ...settings, SVC_DATA_DIR: directory() });
    const credentials = credentialsIn(directory());
    const client = service.client(await signIn(service.client(), credentials));
    const payload = { pipeline: [{ uses: 'echo', with: { index: 1 } }] };
    const created_by = credentials.agent_id;
    const schedule = { schedule_kind: 'event', schedule_expr: 'never.published' };
    const task = { title: 'echo', description: 'echo', created_by, ...schedule, payload };
    const id = (await client.post('/tasks', task)).textAt('id');
    const waiting = Array.from({ length: 5 }, () => client.post(`/tasks/${id}/run_now?wait=20`));
    for (const { status } of await Promise.all(waiting)) expect(status).to.be.within(200, 202);
    const event = { topic: 'another.topic', source_agent_id: created_by, payload: {} };
    expect((await client.post('/events', event)).status).to.be.within(200, 202);
    expect(servers.calls.subscribed).to.equal(1);

    // The heartbeat reads the position of the last event. Checkpoints are stored within seconds.
    const others = (): number =>
      servers.calls.readsOfLog.filter(({ backwards, count }) => !backwards || count > 1).length;
    let last = { others: others(), at: performance.now() };
    const isIdle = (): boolean => {
      if (others() > last.others) last = { others: others(), at: performance.now() };
      return performance.now() - last.at > IDLE_MS;
    };
    await eventually(isIdle, { limitMs: 6 * IDLE_MS, what: 'no read of the log' });
    expect(servers.calls.subscribed).to.equal(1);
    await service.terminate();
  });
});
