import { expect } from 'chai';
import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Cluster } from '../cluster.ts';
import { faultsOfExclusion } from './exclusion-checks.ts';
import { long } from './kill-matrix.ts';
import { Ledger } from '../ledger.ts';
import { faultsOfRuns } from '../log-checks.ts';
import type { CreatedTask } from './kill-tasks.ts';
import { StepServer } from '../step-server.ts';

/** How many tasks share the key. Each has one run. */
const count = long ? 1000 : 100;
/** How often the process that holds the key is killed. */
const kills = long ? 10 : 3;
/** Two processes that execute two runs at a time each. */
const workers = [1, 2] as const;
const key = 'the only printer';

describe(`${count} tasks on one concurrency key, whose holder is killed ${kills} times`, function () {
  this.timeout(long ? 900_000 : 300_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let steps: StepServer;
  before(async () => {
    buildService();
    steps = await StepServer.start();
  });
  after(() => steps.close());

  it('each run once, and never two at a time', async () => {
    const data = directory();
    const cluster = new Cluster(['api,projector,scheduler', 'worker', 'worker'], {
      SVC_DATA_DIR: data,
      SVC_WORKER_CONCURRENCY: '2',
      SVC_RATE_LIMIT: '1000000',
    });
    await cluster.start();
    const tasks = await createTasks(cluster, steps.heldUrl);
    const published = await cluster.client().post('/events', {
      topic: 'print.all',
      payload: {},
      source_agent_id: cluster.credentials?.agent_id,
    });
    expect(published.at('details.triggered_tasks')).to.have.lengthOf(count);
    await steps.held.wait();
    await all(() => {
      expect(Ledger.read(data).runs()).to.have.lengthOf(count);
    }, 'every run to be requested');
    // A worker that stalls beyond its lease loses its run, and another calls the same step again.
    expect(new Set(steps.held.values), 'calls while one holds the key').to.have.property('size', 1);

    const taken: string[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      // The first is killed during its step, the others at any point.
      taken.push(await killHolder(cluster, data, taken));
      if (kill === 0) steps.release();
    }
    await all(() => {
      const left = Ledger.read(data)
        .runs()
        .filter(({ end }) => end === undefined);
      if (left.length > 0) throw new Error(`${left.length} runs are unfinished`);
    }, 'every run to end');
    await all(async () => {
      const shown = await cluster.client().get(`/concurrency/${encodeURIComponent(key)}`);
      expect(shown.json).to.deep.equal({
        key,
        limit: 1,
        holders: [],
        waiters: [],
        more_waiters: 0,
      });
    }, 'the key to be free');
    expect(await cluster.terminate()).to.deep.equal([0, 0, 0]);

    const ledger = Ledger.read(data);
    const ids = new Set(tasks.map(({ id }) => id));
    expect(faultsOfExclusion(ledger, ids, 1)).to.deep.equal([]);
    expect(faultsOfRuns(ledger, tasks)).to.deep.equal([]);
    expect(new Set(ledger.runs().map(({ request }) => request.data.task_id))).to.deep.equal(ids);
    expect(ledger.all('RunInterrupted'), 'runs that were taken over').not.to.deep.equal([]);
    const startedBy = new Set(ledger.all('RunStarted').map(({ data: { worker } }) => worker));
    expect(startedBy.size, 'processes that took part').to.be.greaterThan(kills);
  });
});

async function createTasks(cluster: Cluster, url: string): Promise<CreatedTask[]> {
  const tasks: CreatedTask[] = [];
  for (let n = 0; n < count; n += 1) {
    const name = `print ${n}`;
    const body = {
      title: name,
      description: 'of those that share a key',
      schedule_kind: 'event',
      schedule_expr: 'print.*',
      concurrency_key: key,
      created_by: cluster.credentials?.agent_id,
      payload: {
        pipeline: [
          { id: 'print', uses: 'http.request', with: { url } },
          // Slows the runs down, so that some are unfinished at the last kill.
          { id: 'dry', uses: 'sleep', with: { seconds: 0.05 } },
        ],
      },
    };
    const answer = await cluster.client().post('/tasks', body);
    expect(answer.status, answer.text).to.equal(201);
    const createdAt = Date.parse(answer.textAt('created_at'));
    tasks.push({ name, body, attempts: 1, id: answer.textAt('id'), createdAt });
  }
  return tasks;
}

/**
 * Kills the process that executes the run with the key, waits until another has taken the run over
 * or ended it, and restarts the process.
 * @param killed runs whose holders were killed before
 * @returns the run
 */
async function killHolder(
  cluster: Cluster,
  data: string,
  killed: readonly string[],
): Promise<string> {
  let run = '';
  await all(async () => {
    const holder = Ledger.read(data)
      .runs()
      .findLast(({ events, end }) => end === undefined && events.at(-1)?.type === 'RunStarted');
    const start = holder?.events.at(-1);
    if (start?.type !== 'RunStarted' || killed.includes(holder?.id ?? '')) {
      throw new Error('no run holds the key now');
    }
    const index = workers.find((each) => pidIn(start.data.worker) === cluster.process(each).pid);
    if (index === undefined) throw new Error(`${start.data.worker} is gone already`);
    await cluster.kill([index]);
    await cluster.restart([index]);
    run = holder?.id ?? '';
  }, 'a run to hold the key');
  return run;
}

/** The service names a process by its host, process id and a random part. */
const pidIn = (worker: string): number => Number(worker.split('-').at(-2));

const all = (check: () => Promise<void> | void, what: string): Promise<void> =>
  eventually(
    async () => {
      await check();
    },
    { what, limitMs: long ? 600_000 : 90_000 },
  );
