import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { runsProjection } from '../../projections/views/runs.ts';
import { projectRoot } from '../../test/support/project-root.ts';
import { onBenchExit } from '../bench-folder.ts';
import { withBenchStore, type BenchStore } from '../bench-service.ts';
import { allEvents, inChunks } from '../log.ts';
import { startHttpService, type HttpService } from '../http/http-service.ts';
import { percentile } from '../statistics.ts';
import { atLeast, lessThan, type Figures, type Benchmark } from '../benchmark.ts';

const SLOTS = 1_000;
const SETTLE = 500;

/** Runs of three steps: how many a second, and for how many seconds. */
const RUNS_A_SECOND = 200;
const SECONDS = 10;

/** Runs with a step that one worker in another process does over HTTP. */
export const externalJobs: Benchmark = {
  targets: [
    atLeast('jobs/s', 2_500),
    lessThan('p99 ms', 20),
    lessThan('three steps p50 ms', 40),
    lessThan('three steps p99 ms', 150),
  ],
  count: ({ n }) => n,
  measure: ({ n, idle }) =>
    withBenchStore(async (bench) => {
      const service = await startHttpService(bench.directory);
      try {
        return {
          ...(await throughput(bench, service, n)),
          ...(await latency(bench, service, idle)),
          ...(await threeSteps(bench, service, n + idle)),
        };
      } finally {
        await service.process.stop();
      }
    }),
};

/** All jobs wait, and then the worker starts. Measured from the first job until reads show all runs as ended. */
async function throughput(bench: BenchStore, service: HttpService, n: number): Promise<Figures> {
  // The tool is offered first, because runs with an unknown tool fail.
  await (await ExternalWorker.start(service, 1)).stop();
  const { id, task } = await bench.createTask({ payload });
  await inChunks(n, 500, () => bench.requestRun(id, task));
  await bench.untilDocuments(runsProjection, n, [{ field: 'state', op: 'eq', value: 'waiting' }]);
  const before = service.process.cpuSeconds();
  const worker = await ExternalWorker.start(service, SLOTS);
  await bench.untilRuns('succeeded', n);
  const end = Date.now();
  const cpu = ((service.process.cpuSeconds() - before) / n) * 1e6;
  await worker.stop();
  const begun = [...worker.calls.values()].reduce((least, at) => Math.min(least, at), Infinity);
  return { 'jobs/s': (n / (end - begun)) * 1000, 'cpu us a job': cpu };
}

/**
 * A run every 25 to 75 ms on an otherwise idle service. Measured from its request over HTTP to the worker's function.
 */
async function latency(bench: BenchStore, service: HttpService, n: number): Promise<Figures> {
  const { id } = await bench.createTask({ payload });
  const worker = await ExternalWorker.start(service, 10);
  await pause(SETTLE);
  const asked = new Map<string, number>();
  for (let run = 0; run < n; run += 1) {
    await pause(25 + Math.random() * 50);
    const at = Date.now();
    const { data } = await service.client.tasks.runNow(id);
    asked.set(data.details.run_id, at);
  }
  while (worker.calls.size < n) await pause(5);
  await worker.stop();
  const samples = [...asked].map(([run, at]) => (worker.calls.get(run) ?? Number.NaN) - at);
  return { 'p50 ms': percentile(samples, 0.5), 'p99 ms': percentile(samples, 0.99) };
}

/**
 * Runs with a step of the worker between two of the service, requested over HTTP at a steady rate, regardless of the
 * earlier runs. Measured from each request to the commit of the run's end.
 * @param before the number of runs that have already succeeded
 */
async function threeSteps(
  bench: BenchStore,
  service: HttpService,
  before: number,
): Promise<Figures> {
  const pipeline = [
    { id: 'first', uses: 'echo', with: { text: '${run.id}' } },
    { id: 'job', uses: 'bench.job', with: { text: '${steps.first.text}' } },
    { uses: 'echo', with: { text: '${steps.job.text}' } },
  ];
  const { id } = await bench.createTask({ payload: { pipeline } });
  const worker = await ExternalWorker.start(service, SLOTS);
  await pause(SETTLE);
  const asked = new Map<string, number>();
  const count = RUNS_A_SECOND * SECONDS;
  const cpuBefore = service.process.cpuSeconds();
  const start = Date.now();
  const requests = Array.from({ length: count }, async (_, index) => {
    const at = start + (index * 1000) / RUNS_A_SECOND;
    await pause(at - start);
    const { data } = await service.client.tasks.runNow(id);
    asked.set(data.details.run_id, at);
  });
  await Promise.all(requests);
  await bench.untilRuns('succeeded', before + count);
  const cpu = ((service.process.cpuSeconds() - cpuBefore) / count) * 1e6;
  await worker.stop();
  const samples: number[] = [];
  for await (const event of allEvents(bench.store)) {
    const at = asked.get(event.stream.slice('run-'.length));
    if (event.type !== 'RunSucceeded' || at === undefined) continue;
    samples.push(Date.parse(event.createdAt) - at);
  }
  return {
    'three steps p50 ms': percentile(samples, 0.5),
    'three steps p99 ms': percentile(samples, 0.99),
    'three steps cpu us a run': cpu,
  };
}

const payload = { pipeline: [{ id: 'job', uses: 'bench.job', with: { text: 'hello' } }] };

class ExternalWorker {
  /** When the function was called for each run. */
  readonly calls = new Map<string, number>();
  readonly #child;

  private constructor(words: readonly string[]) {
    const program = 'bench/scheduling/external-worker.ts';
    this.#child = spawn(process.execPath, ['--import', 'tsx/esm', program, ...words], {
      cwd: projectRoot,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.#child.once(
      'exit',
      onBenchExit(() => this.#child.kill('SIGKILL')),
    );
  }

  static async start(service: HttpService, slots: number): Promise<ExternalWorker> {
    const { agentId, agentSecret } = service;
    const url = `http://127.0.0.1:${service.process.port}`;
    const worker = new ExternalWorker([url, agentId, agentSecret, String(slots)]);
    const lines = createInterface({ input: worker.#child.stdout });
    await new Promise<void>((started, failed) => {
      worker.#child.once('exit', (code) => failed(new Error(`the worker ended with ${code}`)));
      lines.on('line', (line) => {
        const [run = '', at = ''] = line.split(' ');
        if (run === 'started') started();
        else worker.calls.set(run, Number(at));
      });
    });
    return worker;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }
}
