import { expect } from 'chai';
import { join } from 'node:path';
import { buildService, endsItsProcesses, type ProcessEnd } from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { Cluster, oneProcess } from '../cluster.ts';
import { Ledger, type LoggedRun } from '../ledger.ts';
import { StepServer } from '../step-server.ts';

/** The result of a run whose worker was stopped in the meantime. */
interface Outcome {
  readonly run: LoggedRun;
  readonly end: ProcessEnd;
  /** How long the worker took to exit, in milliseconds. */
  readonly took: number;
  readonly counts: ReadonlyMap<string, number>;
}

/** The documented drain time of a stopping worker, in milliseconds. */
const DRAIN_LIMIT = 25_000;

describe('the service, when it is stopped', function () {
  this.timeout(180_000);
  let directory: TemporaryDirectory;
  let servers: StepServer[] = [];
  let short: Outcome;
  let long: Outcome;

  // Concurrently, because one of them takes as long as a drain may.
  before(async () => {
    buildService();
    directory = await makeTemporaryDirectory();
    servers = [await StepServer.start(), await StepServer.start()];
    const [forShort, forLong] = servers as [StepServer, StepServer];
    [short, long] = await Promise.all([
      stopWithAShortStep(join(directory.path, 'short'), forShort),
      stopWithALongStep(join(directory.path, 'long'), forLong),
    ]);
  });
  endsItsProcesses();
  after(async () => {
    await Promise.all(servers.map((server) => server.close()));
    await directory.remove();
  });

  it('lets running steps end, and exits with 0; more signals shorten nothing', () => {
    expect(short.end).to.deep.equal({ code: 0, signal: null });
    expect(types(short.run)).to.deep.equal([
      'RunRequested',
      'RunStarted',
      'RunStepCompleted',
      'RunStepCompleted',
      'RunSucceeded',
    ]);
    expect(called(short)).to.deep.equal({ first: 1, held: 1, last: 1 });
  });

  it('hands back slow runs, which resume elsewhere from their first unfinished step', () => {
    expect(long.end).to.deep.equal({ code: 0, signal: null });
    expect(long.took).to.be.within(DRAIN_LIMIT - 500, DRAIN_LIMIT + 14_000);
    expect(types(long.run)).to.deep.equal([
      'RunRequested',
      'RunStarted',
      'RunStepCompleted',
      'RunInterrupted',
      'RunStarted',
      'RunStepCompleted',
      'RunSucceeded',
    ]);
    expect(called(long)).to.deep.equal({ first: 1, held: 2, last: 1 });
  });

  it('uses up no retry of the run', () => {
    expect(long.run.events[3]?.data).to.deep.include({ cause: 'drained' });
    const attempts = long.run.events.flatMap((event) =>
      event.type === 'RunStarted' || event.type === 'RunSucceeded' ? [event.data.attempt] : [],
    );
    expect(attempts).to.deep.equal([1, 1, 1]);
  });
});

const types = ({ events }: LoggedRun): readonly string[] => events.map(({ type }) => type);

/** How often each step was called. */
function called({ counts, run }: Outcome): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...counts].map(([key, count]) => [key.replace(`${run.id}:`, ''), count]),
  );
}

/**
 * Runs a task whose second step is held by the server; returns its run's id once that step is
 * running.
 */
async function runUntilHeld(cluster: Cluster, server: StepServer): Promise<string> {
  const call = (id: string, url: string): object => ({
    id,
    uses: 'http.request',
    with: { method: 'POST', url },
    timeout_seconds: 80,
  });
  const created = await cluster.client().post('/tasks', {
    title: 'held',
    description: 'waits for the server of the test',
    schedule_kind: 'event',
    created_by: cluster.credentials?.agent_id,
    max_retries: 0,
    payload: {
      pipeline: [call('first', server.url), call('held', server.heldUrl), call('last', server.url)],
    },
  });
  expect(created.status, created.text).to.equal(201);
  const ran = await cluster.client().post(`/tasks/${created.textAt('id')}/run_now`);
  await server.held.wait(undefined, { what: 'the second step', limitMs: 20_000 });
  return ran.textAt('details.run_id');
}

function endedRun(dataDirectory: string, runId: string): Promise<LoggedRun> {
  return found(
    () =>
      Ledger.read(dataDirectory)
        .runs()
        .find(({ id, end }) => id === runId && end !== undefined),
    { what: 'the run to end', limitMs: 20_000 },
  );
}

async function stopWithAShortStep(dataDirectory: string, server: StepServer): Promise<Outcome> {
  const cluster = new Cluster(oneProcess, { SVC_DATA_DIR: dataDirectory });
  await cluster.start();
  const runId = await runUntilHeld(cluster, server);
  const service = cluster.process(0);
  const begun = performance.now();
  service.signal('SIGTERM');
  await eventually(() => service.log.some(({ message }) => message === 'stopping'));
  service.signal('SIGTERM');
  service.signal('SIGINT');
  // The process still runs despite the repeated signals, because the step is unfinished.
  expect(service.end).to.equal(undefined);
  server.release();
  const end = await service.ended();
  const run = await endedRun(dataDirectory, runId);
  return { run, end, took: performance.now() - begun, counts: server.counts };
}

async function stopWithALongStep(dataDirectory: string, server: StepServer): Promise<Outcome> {
  const cluster = new Cluster(['api,projector,scheduler', 'worker', 'worker'], {
    SVC_DATA_DIR: dataDirectory,
    // A worker that is stopping hands back its runs, and none is lost to a lease that expired.
    SVC_LEASE_SECONDS: '30',
  });
  await cluster.start();
  const runId = await runUntilHeld(cluster, server);
  const started = Ledger.read(dataDirectory)
    .all('RunStarted')
    .find(({ stream }) => stream === `run-${runId}`);
  const owner = [1, 2].find((index) =>
    started?.data.worker.includes(`-${cluster.process(index).pid}-`),
  );
  if (owner === undefined) throw new Error('no worker executes the run');
  const begun = performance.now();
  cluster.process(owner).signal('SIGTERM');
  await server.held.count(2, { what: 'another worker to begin the step', limitMs: 40_000 });
  server.release();
  const end = await cluster.process(owner).ended();
  const took = performance.now() - begun;
  const run = await endedRun(dataDirectory, runId);
  expect(await cluster.process(3 - owner).terminate()).to.include({ code: 0 });
  return { run, end, took, counts: server.counts };
}
