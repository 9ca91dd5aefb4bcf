import { expect } from 'chai';
import { join } from 'node:path';
import type { ApiClient } from '../../support/api-client.ts';
import { requiredProgram } from '../../support/required-program.ts';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { StepServer } from '../step-server.ts';
import { Prometheus, quickRules } from './prometheus.ts';

const METRICS = '/ext/observability/metrics';

describe('the alerts in a real Prometheus that scrapes a real service', function () {
  this.timeout(300_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let program = '';
  let prometheus: Prometheus | undefined;
  let steps: StepServer | undefined;

  before(function () {
    program = requiredProgram(this, 'prometheus');
  });
  afterEach(async () => {
    await prometheus?.stop();
    prometheus = undefined;
    await steps?.close();
    steps = undefined;
  });

  const begin = (settings: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> =>
    ServiceProcess.start({ SVC_DATA_DIR: join(directory(), 'data'), ...settings });

  async function adminOf(service: ServiceProcess): Promise<ApiClient> {
    const credentials = credentialsIn(join(directory(), 'data'));
    return service.client(await signIn(service.client(), credentials));
  }

  async function watch(service: ServiceProcess): Promise<Prometheus> {
    const { host } = new URL(service.address);
    prometheus = await Prometheus.start({
      program,
      directory: directory(),
      target: host,
      path: METRICS,
      rules: quickRules(),
    });
    return prometheus;
  }

  async function taskOf(client: ApiClient, more: object): Promise<string> {
    const made = await client.post('/tasks', {
      title: 'watched',
      description: 'is watched',
      schedule_kind: 'cron',
      created_by: credentialsIn(join(directory(), 'data')).agent_id,
      ...more,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  }

  it('report fires missed before the first scrape, and a hold, and clear', async () => {
    const service = await begin();
    const client = await adminOf(service);
    await taskOf(client, {
      schedule_expr: '* * * * * *',
      payload: { pipeline: [{ uses: 'echo', with: {} }] },
    });
    expect((await client.post('/operations/hold', { reason: 'to miss some' })).status).to.equal(
      200,
    );
    const missed = async (): Promise<number> => {
      const { text } = await client.get(METRICS, { token: null });
      return Number(/^fires_total\{outcome="missed"\} (\d+)$/m.exec(text)?.[1] ?? -1);
    };
    expect(await missed()).to.equal(0);
    await eventually(
      async () => {
        await client.post('/operations/release', { missed: 'skip' });
        const already = await missed();
        // On hold either way: for the next attempt, or for the alert.
        await client.post('/operations/hold', { reason: 'to miss some more' });
        expect(already).to.be.greaterThan(0);
      },
      { limitMs: 30_000, what: 'a fire to be missed' },
    );
    const watching = await watch(service);
    await watching.shows('FiresMissed', true);
    await watching.shows('HeldForLong', true);
    expect((await client.post('/operations/release', { missed: 'latest' })).status).to.equal(200);
    await watching.shows('HeldForLong', false);
    await watching.shows('FiresMissed', false);
    await service.terminate();
  });

  it('report runs that wait while all slots are taken, and a missing service, and clear', async () => {
    const target = (steps = await StepServer.start());
    const settings = { SVC_WORKER_CONCURRENCY: '1', SVC_HTTP_ALLOW_PRIVATE: 'true' };
    const service = await begin(settings);
    const client = await adminOf(service);
    const held = { uses: 'http.request', with: { url: target.heldUrl }, timeout_seconds: 600 };
    const id = await taskOf(client, { schedule_expr: '0 3 1 1 *', payload: { pipeline: [held] } });
    const runs: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      runs.push((await client.post(`/tasks/${id}/run_now`)).textAt('details.run_id'));
    }
    const watching = await watch(service);
    await watching.shows('RunsWaitForSlots', true);
    for (const run of runs) await client.post(`/runs/${run}/cancel`);
    await watching.shows('RunsWaitForSlots', false);
    const { port } = new URL(service.address);
    await service.terminate();
    await watching.shows('ServiceGone', true);
    const next = await begin({ SVC_PORT: port });
    await watching.shows('ServiceGone', false);
    await next.terminate();
  });
});
