import { expect } from 'chai';
import { join } from 'node:path';
import type { ReceivedResponse, ApiClient } from '../../support/api-client.ts';
import { faultsOfFires, type SecondsTask } from '../../support/expected-fires.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Cluster, oneProcess } from '../cluster.ts';
import { Ledger } from '../ledger.ts';
import { faultsOfCauses, faultsOfRuns, faultsOfStreams } from '../log-checks.ts';
import { playScenario } from '../scripted-scenario.ts';
import { Servers } from '../servers.ts';
import { longVersions } from '../../support/left-out.ts';

/** Duration of a server outage, in milliseconds. */
const ABSENCE = longVersions() ? 20_000 : 3_000;
/**
 * Maximum duration of a request during an outage: 4 s to catch up and read a view, and four
 * times as much for a busy machine. A request that waits for the unavailable server takes longer.
 * Milliseconds.
 */
const MAX_REQUEST_MS = 20_000;

const everySecond: Omit<SecondsTask, 'createdAt'> = {
  isDue: () => true,
  misfire: 'all',
  graceSeconds: 60,
};

describe('the service on EventStoreDB and MongoDB', function () {
  this.timeout(120_000);
  let servers: Servers;
  before(() => buildService());
  endsItsProcesses();
  afterEach(() => servers.stop());
  const directory = useTemporaryDirectory();
  beforeEach(async () => {
    servers = await Servers.start();
  });

  const settings = (): Record<string, string> => ({
    ...servers.settings,
    SVC_DATA_DIR: join(directory(), 'data'),
    SVC_LEASE_SECONDS: '2',
  });

  it('has the same results as on the embedded stores', async () => {
    const embedded = new Cluster(oneProcess, { SVC_DATA_DIR: join(directory(), 'embedded') });
    await embedded.start();
    const wanted = await playScenario(embedded);
    await embedded.terminate();
    const served = new Cluster(['api,projector,worker', 'scheduler,worker'], settings());
    await served.start();
    expect(await playScenario(served)).to.deep.equal(wanted);
    expect(await served.terminate()).to.deep.equal([0, 0]);
  });

  for (const away of ['stream_store', 'database'] as const) {
    it(`starts while ${away} is unavailable, says so, is ready when it is back, and loses nothing when ${away} is unavailable again, for ${ABSENCE / 1000} s`, async () => {
      await leave(servers, away);
      const service = ServiceProcess.begin(settings());
      await service.listening();
      const anyone = service.client();
      const unready = await quickly(() => anyone.get('/health/ready'));
      expect(unready.status, unready.text).to.equal(503);
      expect(unhealthy(unready), unready.text).to.include(away);
      expect((await anyone.get('/health/live')).status).to.equal(200);
      await comeBack(servers, away);
      await service.ready();
      // The first admin is created when the log is available.
      const credentials = await found(() => {
        try {
          return credentialsIn(join(directory(), 'data'));
        } catch {
          return undefined;
        }
      });
      const client = service.client(await signIn(anyone, credentials));
      await eventually(async () => {
        const { status, text } = await client.get('/tasks');
        if (status !== 200) throw new Error(text);
      });

      const { taskId, createdAt } = await createTask(client, credentials.agent_id);
      await eventually(
        async () => (await client.get(`/runs?task_id=${taskId}&success=true`)).at('total') !== 0,
        { what: 'the first run' },
      );
      const acknowledged = [await runNow(client, taskId)];

      await leave(servers, away);
      const leftAt = Date.now();
      await eventually(
        async () => {
          const ready = await quickly(() => client.get('/health/ready'));
          expect(ready.status, ready.text).to.equal(503);
          expect(unhealthy(ready), ready.text).to.include(away);
        },
        { limitMs: 20_000, what: `the service to say that ${away} is unavailable` },
      );
      while (Date.now() < leftAt + ABSENCE) {
        const read = await quickly(() => client.get(`/runs?task_id=${taskId}`));
        const command = await quickly(() => client.post(`/tasks/${taskId}/run_now`));
        if (away === 'database') expectAway(read, away);
        if (away === 'stream_store') expectAway(command, away);
        if (command.status === 200) acknowledged.push(command.textAt('details.run_id'));
        else expectAway(command, away);
        await pause(200);
      }

      await comeBack(servers, away);
      await service.ready();
      acknowledged.push(await runNow(client, taskId));
      const backAt = Date.now();
      const ledger = await settled(servers, client, taskId, backAt);
      const faults = [
        ...faultsOfStreams(ledger),
        ...faultsOfFires({ ...everySecond, createdAt }, ledger.fires(taskId)),
        ...faultsOfCauses(ledger),
        ...faultsOfRuns(ledger, []),
      ];
      expect(faults.join('\n')).to.equal('');
      const manual = ledger.runs().filter(({ request }) => request.data.trigger === 'manual');
      expect(manual.map(({ id }) => id)).to.include.members(acknowledged);
      const listed = await found(
        async () => {
          const answer = await client.get(`/runs?task_id=${taskId}&limit=1&after=${ledger.head}`);
          return answer.status === 200 ? answer : undefined;
        },
        { limitMs: 20_000, what: 'the view to have reached the end of the log' },
      );
      const shown = ledger.runs().filter(({ end }) => end?.type !== 'RunSkipped');
      expect(listed.at('total'), listed.text).to.equal(shown.length);
      expect((await service.terminate()).code).to.equal(0);
    });
  }
});

/** Pauses the task once it has fired, waits until all its runs have ended, and returns the log. */
async function settled(
  servers: Servers,
  client: ApiClient,
  taskId: string,
  after: number,
): Promise<Ledger> {
  const firesOn = async (): Promise<boolean> => {
    const fired = (await servers.ledger()).all('Fired').at(-1);
    return Date.parse(fired?.data.nominal ?? '') > after + 1000;
  };
  await eventually(firesOn, { limitMs: 30_000, what: 'the task to fire again' });
  const paused = await client.post(`/tasks/${taskId}/pause`);
  expect(paused.status, paused.text).to.equal(200);
  return found(
    async () => {
      const ledger = await servers.ledger();
      const hasUnfinished = ledger.runs().some(({ end }) => end === undefined);
      return hasUnfinished || faultsOfCauses(ledger).length > 0 ? undefined : ledger;
    },
    { limitMs: 30_000, what: 'all runs to end' },
  );
}

async function createTask(
  client: ApiClient,
  owner: string,
): Promise<{ readonly taskId: string; readonly createdAt: number }> {
  const created = await client.post('/tasks', {
    title: 'every second',
    description: 'goes on',
    schedule_kind: 'cron',
    schedule_expr: '* * * * * *',
    created_by: owner,
    misfire_policy: 'all',
    payload: { pipeline: [{ uses: 'echo', with: { said: 'here' } }] },
  });
  expect(created.status, created.text).to.equal(201);
  const createdAt = Date.parse(created.textAt('created_at'));
  return { taskId: created.textAt('id'), createdAt };
}

async function runNow(client: ApiClient, taskId: string): Promise<string> {
  const answer = await client.post(`/tasks/${taskId}/run_now`);
  expect(answer.status, answer.text).to.equal(200);
  return answer.textAt('details.run_id');
}

async function leave(servers: Servers, which: 'stream_store' | 'database'): Promise<void> {
  if (which === 'database') await servers.stopReadModel();
  else servers.stopEventStore();
}

async function comeBack(servers: Servers, which: 'stream_store' | 'database'): Promise<void> {
  if (which === 'database') await servers.resumeReadModel();
  else await servers.resumeEventStore();
}

/** The names of the failing checks. */
function unhealthy(answer: ReceivedResponse): readonly unknown[] {
  const checks = answer.json['checks'] as readonly { name: string; status: string }[];
  return checks.filter(({ status }) => status !== 'healthy').map(({ name }) => name);
}

function expectAway(answer: ReceivedResponse, component: string): void {
  expect(answer.status, answer.text).to.equal(503);
  expect(answer.at('error')).to.equal('unavailable');
  expect(answer.at('details.component'), answer.text).to.equal(component);
}

/** A response that must not take long. */
async function quickly(ask: () => Promise<ReceivedResponse>): Promise<ReceivedResponse> {
  const begun = performance.now();
  const answer = await ask();
  expect(performance.now() - begun, answer.text).to.be.lessThan(MAX_REQUEST_MS);
  return answer;
}

/** Pause between two polls; the test does not depend on it. */
const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));
