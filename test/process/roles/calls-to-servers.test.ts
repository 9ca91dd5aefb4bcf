import { expect } from 'chai';
import type { ApiClient } from '../../support/api-client.ts';
import type { ReceivedAppend } from '../../support/eventstoredb-server/append-outcome.ts';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Cluster } from '../cluster.ts';
import { Servers } from '../servers.ts';

/** Milliseconds without a read; several times as long as a subscription may lack an event. */
const IDLE_MS = 7_000;

/** The budget of docs/reference/performance.md: for each process, and for each run of one step. */
const SUBSCRIPTIONS = 1;
const APPENDS = 2;
const RUNS = 40;

/** Whether an append is the start of a run and nothing else. */
function isStart({ events }: ReceivedAppend): boolean {
  return events.length === 1 && events[0]?.type === 'RunStarted';
}

describe('the calls to EventStoreDB', function () {
  this.timeout(180_000);
  const directory = useTemporaryDirectory();
  endsItsProcesses();
  let servers: Servers;
  beforeEach(async () => {
    servers = await Servers.start();
  });
  afterEach(() => servers.stop());

  /** Creates a task of one step. @returns its id */
  async function createTask(client: ApiClient, created_by: string): Promise<string> {
    const payload = { pipeline: [{ uses: 'echo', with: { index: 1 } }] };
    const schedule = { schedule_kind: 'event', schedule_expr: 'never.published' };
    const task = { title: 'echo', description: 'echo', created_by, ...schedule, payload };
    return (await client.post('/tasks', task)).textAt('id');
  }

  /** Requests runs without an Idempotency-Key, all at once, waits for their ends, and checks the number of calls. */
  async function run(client: ApiClient, task: string, count: number): Promise<void> {
    const before = servers.calls.appends.length;
    const requests = Array.from({ length: count }, () => client.post(`/tasks/${task}/run_now`));
    for (const { status, text } of await Promise.all(requests)) {
      expect(status, text).to.be.within(200, 202);
    }
    const haveEnded = async (): Promise<boolean> => {
      const listed = await client.get(`/runs?task_id=${task}&state=succeeded&limit=1`);
      return listed.status === 200 && listed.at('total') === count;
    };
    await eventually(haveEnded, { limitMs: 60_000, what: 'the end of all runs' });
    // A repeated attempt, which a busy machine may need, has the same ids.
    const appends = new Map(
      servers.calls.appends.slice(before).map((append) => [append.events[0]?.id, append]),
    );
    // A start is written alone if a busy machine keeps its step from ending at once (docs/decisions/0024).
    const all = [...appends.values()];
    const late = all.filter(isStart);
    const streams = all.map(({ stream }) => stream).join(' ');
    // A few runs may all be late.
    if (count >= RUNS) expect(late.length, streams).to.be.below(count / 2);
    expect(all.length - late.length, streams).to.be.at.most(APPENDS * count);
  }

  /**
   * Resolves when the given number of subscriptions is open. A subscription lost on a busy machine is being replaced.
   */
  async function untilSubscribed(count: number): Promise<void> {
    const check = (): void => {
      expect(servers.calls.subscriptions).to.have.lengthOf(count);
    };
    await eventually(check, { what: `${count} subscriptions` });
  }

  /** Resolves when no page of the log was read for a while. Checkpoints are stored within seconds. */
  async function untilNoPageIsRead(): Promise<void> {
    // The heartbeat reads the position of the last event.
    const pages = (): number =>
      servers.calls.readsOfLog.filter(({ backwards, count }) => !backwards || count > 1).length;
    let last = { pages: pages(), at: performance.now() };
    const isIdle = (): boolean => {
      if (pages() > last.pages) last = { pages: pages(), at: performance.now() };
      return performance.now() - last.at > IDLE_MS;
    };
    await eventually(isIdle, { limitMs: 6 * IDLE_MS, what: 'no read of the log' });
  }

  it('of a process with all roles are one subscription, two appends per run, and no page read while it is idle', async () => {
    const { settings } = servers;
    const service = await ServiceProcess.start({ ...settings, SVC_DATA_DIR: directory() });
    const credentials = credentialsIn(directory());
    const client = service.client(await signIn(service.client(), credentials));
    await run(client, await createTask(client, credentials.agent_id), 5);
    const event = {
      topic: 'another.topic',
      source_agent_id: credentials.agent_id,
      payload: {},
    };
    expect((await client.post('/events', event)).status).to.be.within(200, 202);
    await untilSubscribed(SUBSCRIPTIONS);
    await untilNoPageIsRead();
    await untilSubscribed(SUBSCRIPTIONS);
    await service.terminate();
  });

  it('of a process with embedded views are two subscriptions, because the thread that builds views has its own', async () => {
    const { SVC_READ_MODEL_URL: _, ...settings } = servers.settings;
    const service = await ServiceProcess.start({ ...settings, SVC_DATA_DIR: directory() });
    const credentials = credentialsIn(directory());
    const client = service.client(await signIn(service.client(), credentials));
    await run(client, await createTask(client, credentials.agent_id), 5);
    await untilSubscribed(SUBSCRIPTIONS + 1);
    await service.terminate();
  });

  it('of several processes are the same, with one subscription each', async () => {
    // With a second worker, a lost race between the two would add an append.
    const roles = ['api', 'projector,scheduler', 'worker'];
    const cluster = new Cluster(roles, { ...servers.settings, SVC_DATA_DIR: directory() });
    await cluster.start();
    const client = cluster.clientOf(0);
    const task = await createTask(client, cluster.credentials?.agent_id ?? '');
    await run(client, task, RUNS);
    await untilNoPageIsRead();
    await untilSubscribed(SUBSCRIPTIONS * roles.length);
    expect(await cluster.terminate()).to.deep.equal([0, 0, 0]);
  });
});
