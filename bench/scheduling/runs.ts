import { setTimeout as pause } from 'node:timers/promises';
import { toIso } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { BenchService, withBenchStore, type BenchStore } from '../bench-service.ts';
import { allEvents, inChunks } from '../log.ts';
import { percentile } from '../statistics.ts';
import { lessThan, moreThan, type Figures, type Target, type Benchmark } from '../benchmark.ts';

/** Callers that request a run, wait for the response, and continue, as in the peers' benchmark. */
const CALLERS = 50;
const SETTLE = 500;
/** Milliseconds from the creation of the tasks until they are due, and more for each task. */
const LEAD = 4000;
const LEAD_EACH = 0.5;

const drainTargets = [
  moreThan('jobs/s', 3_400, 'graphile-worker'),
  moreThan('jobs/s', 3_700, 'pg-boss, its slower figure'),
  moreThan('jobs/s', 7_700, 'BullMQ, synced'),
  moreThan('jobs/s', 9_000, 'pg-boss, its faster figure'),
];
const endToEndTargets = [moreThan('jobs/s', 5_500)];
const latenessTargets = [
  lessThan('RunStarted p99 ms', 50),
  lessThan('p99 ms', 50, 'the same to the first step'),
];
const latencyTargets = [lessThan('p99 ms', 8)];

/** The benchmarks that the peers have too. */
export const runBenchmarks: Readonly<Record<string, Benchmark>> = {
  'drain-64': throughput(drainTargets, (bench, n) => drain(bench, n, 64)),
  'drain-10': throughput(drainTargets, (bench, n) => drain(bench, n, 10)),
  'end-to-end-64': throughput(endToEndTargets, (bench, n) => endToEnd(bench, n, 64)),
  'end-to-end-10': throughput([], (bench, n) => endToEnd(bench, n, 10)),
  'lateness-instant': delays('due', latenessTargets, (bench, n) => lateness(bench, n, 0)),
  'lateness-spread': delays('due', latenessTargets, (bench, n) => lateness(bench, n, 1000)),
  latency: delays('idle', latencyTargets, latency),
};

/** Jobs a second, and microseconds of the service's processor time for each. */
interface Throughput {
  readonly rate: number;
  readonly cpu: number;
}

function throughput(
  targets: readonly Target[],
  run: (bench: BenchStore, n: number) => Promise<Throughput>,
): Benchmark {
  return {
    targets,
    peers: { unit: 'jobs/s', headline: 'jobs/s' },
    count: ({ n }) => n,
    async measure({ n }) {
      const { rate, cpu } = await withBenchStore((bench) => run(bench, n));
      return { 'jobs/s': rate, 'cpu us a run': cpu };
    },
  };
}

/** @param run returns when each run was expected to start */
function delays(
  amount: 'due' | 'idle',
  targets: readonly Target[],
  run: (bench: BenchStore, n: number) => Promise<ReadonlyMap<string, number>>,
): Benchmark {
  return {
    targets,
    peers: { unit: 'ms', headline: 'p99 ms' },
    count: (amounts) => amounts[amount],
    measure: (amounts) =>
      withBenchStore(async (bench) => {
        const expected = await run(bench, amounts[amount]);
        const { steps, starts } = await startsOf(bench.store);
        return {
          ...percentiles('', steps, expected),
          ...percentiles('RunStarted ', starts, expected),
        };
      }),
  };
}

function percentiles(
  prefix: string,
  starts: ReadonlyMap<string, number>,
  expected: ReadonlyMap<string, number>,
): Figures {
  const samples = [...starts].map(([run, at]) => at - (expected.get(run) ?? Number.NaN));
  return {
    [`${prefix}p50 ms`]: percentile(samples, 0.5),
    [`${prefix}p99 ms`]: percentile(samples, 0.99),
    [`${prefix}worst ms`]: percentile(samples, 1),
  };
}

/** All runs are queued, then the service starts: from the first start until all are readable as ended. */
async function drain(bench: BenchStore, n: number, slots: number): Promise<Throughput> {
  const { id, task } = await bench.createTask({});
  const projector = await BenchService.start(bench.directory, { SVC_ROLES: 'projector' });
  await inChunks(n, 500, () => bench.requestRun(id, task));
  await bench.untilRuns('queued', n);
  await projector.stop();
  const service = await startWorker(bench, slots);
  const { end, cpu } = await untilEnded(bench, service, n, () => Promise.resolve());
  const { steps } = await startsOf(bench.store);
  const start = [...steps.values()].reduce((least, at) => Math.min(least, at), Infinity);
  return { rate: (n / (end - start)) * 1000, cpu };
}

/** Runs are requested one by one while the service runs: from the first call until all are readable as ended. */
async function endToEnd(bench: BenchStore, n: number, slots: number): Promise<Throughput> {
  const { id, task } = await bench.createTask({});
  const service = await startWorker(bench, slots);
  // The reader is opened before the first call, like a peer's connection.
  await bench.untilRuns('succeeded', 0);
  await pause(SETTLE);
  const start = Date.now();
  let left = n;
  const caller = async (): Promise<void> => {
    while (left-- > 0) await bench.requestRun(id, task);
  };
  const { end, cpu } = await untilEnded(bench, service, n, () =>
    Promise.all(Array.from({ length: CALLERS }, caller)),
  );
  return { rate: (n / (end - start)) * 1000, cpu };
}

const startWorker = ({ directory }: BenchStore, slots: number): Promise<BenchService> =>
  BenchService.start(directory, { SVC_WORKER_CONCURRENCY: String(slots) });

/** Works until all runs are readable as ended, and stops the service. */
async function untilEnded(
  bench: BenchStore,
  service: BenchService,
  n: number,
  work: () => Promise<unknown>,
): Promise<{ readonly end: number; readonly cpu: number }> {
  const before = service.cpuSeconds();
  await work();
  await bench.untilRuns('succeeded', n);
  const end = Date.now();
  const cpu = ((service.cpuSeconds() - before) / n) * 1e6;
  await service.stop();
  return { end, cpu };
}

/**
 * Tasks of kind once, due in the same second. Returns their nominal times.
 * @throws Error unless each fired, was requested, started and succeeded exactly once
 */
async function lateness(
  bench: BenchStore,
  n: number,
  spread: number,
): Promise<ReadonlyMap<string, number>> {
  const service = await BenchService.start(bench.directory);
  const second = Math.ceil((Date.now() + LEAD + LEAD_EACH * n) / 1000) * 1000;
  await inChunks(n, n, (index) => {
    const at = second + Math.floor((index * spread) / n);
    return bench.createTask({ schedule_kind: 'once', schedule_expr: toIso(at) });
  });
  if (Date.now() > second - SETTLE) throw new Error('the tasks were due before all were created');
  await bench.untilRuns('succeeded', n);
  await service.stop();
  await checkEachOnce(bench.store, n);
  const nominal = new Map<string, number>();
  for await (const event of allEvents(bench.store)) {
    if (event.type === 'Fired') nominal.set(event.data.run_id, Date.parse(event.data.nominal));
  }
  return nominal;
}

/** An idle service receives a request now and then. Returns the times of the calls. */
async function latency(bench: BenchStore, n: number): Promise<ReadonlyMap<string, number>> {
  const { id, task } = await bench.createTask({});
  const service = await BenchService.start(bench.directory);
  await pause(SETTLE);
  const calls = new Map<string, number>();
  for (let index = 0; index < n; index += 1) {
    const at = Date.now();
    calls.set(await bench.requestRun(id, task), at);
    await pause(25 + Math.random() * 50);
  }
  await bench.untilRuns('succeeded', n);
  await service.stop();
  return calls;
}

/**
 * By run: `steps`, when its first step started, after the durable RunStarted (what users see and peers measure); and
 * `starts`, when RunStarted occurred.
 */
async function startsOf(
  store: EventStore,
): Promise<Readonly<Record<'steps' | 'starts', ReadonlyMap<string, number>>>> {
  const [steps, starts] = [new Map<string, number>(), new Map<string, number>()];
  for await (const event of allEvents(store)) {
    const run = event.stream.slice('run-'.length);
    if (event.type === 'RunStarted') starts.set(run, Date.parse(event.metadata.occurredAt));
    if (event.type !== 'RunSucceeded') continue;
    const [first] = event.data.steps;
    if (first) steps.set(run, Date.parse(first.started_at));
  }
  return { steps, starts };
}

/** Checks that the log has `n` tasks with one fire and one run each, requested, started and ended once. */
async function checkEachOnce(store: EventStore, n: number): Promise<void> {
  const types = ['TaskCreated', 'Fired', 'RunRequested', 'RunStarted', 'RunSucceeded'];
  const found = new Map(types.map((type) => [type, new Set<string>()]));
  for await (const { stream, type } of allEvents(store)) {
    const streams = found.get(type);
    if (streams?.has(stream)) throw new Error(`there is a second ${type} in ${stream}`);
    streams?.add(stream);
  }
  for (const [type, streams] of found) {
    if (streams.size !== n) throw new Error(`${streams.size} of ${n} have a ${type}`);
  }
}
