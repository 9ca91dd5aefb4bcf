import { setTimeout as pause } from 'node:timers/promises';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import { toIso } from '../../domain/clock.ts';
import { BenchService, BenchStore } from '../bench-service.ts';

/** Callers that each enqueue, wait for the acknowledgement, and go on: as in the peers' benchmark. */
const CALLERS = 50;
const SETTLE = 500;
/** Tasks are created so long before they are due, and so much longer for each. Milliseconds. */
const LEAD = 4000;
const LEAD_EACH = 0.5;

/** The workloads that `shared/peers` does with other schedulers, done with ours. */
export const runWorkloads = {
  'drain-64': { unit: 'jobs/s', run: (n: number) => drain(n, 64) },
  'drain-10': { unit: 'jobs/s', run: (n: number) => drain(n, 10) },
  'end-to-end-64': { unit: 'jobs/s', run: (n: number) => endToEnd(n, 64) },
  'end-to-end-10': { unit: 'jobs/s', run: (n: number) => endToEnd(n, 10) },
  'lateness-instant': { unit: 'ms', run: (n: number) => lateness(n, 0) },
  'lateness-spread': { unit: 'ms', run: (n: number) => lateness(n, 1000) },
  latency: { unit: 'ms', run: latency },
} as const;

export type RunWorkload = keyof typeof runWorkloads;

/**
 * `rate` in jobs a second, with the microseconds of processor time that the service took for each; or
 * `samples` in milliseconds.
 */
export type Measured = { readonly rate: number; readonly cpu: number } | Samples;

interface Samples {
  /** To the start of the first step, behind the durable RunStarted: what a user sees, and what the peers measure. */
  readonly samples: readonly number[];
  /** To when RunStarted occurred, as the log says. */
  readonly toRunStarted: readonly number[];
}

const concurrencyOf = (slots: number): Record<string, string> => ({
  SVC_WORKER_CONCURRENCY: String(slots),
});

/**
 * All runs are requested (and readable as queued), then the service starts: from the first start until all are
 * readable as ended.
 */
async function drain(n: number, slots: number): Promise<Measured> {
  return withStore(async (bench) => {
    const { id, task } = await bench.createTask({});
    const projector = await BenchService.start(bench.directory, { SVC_ROLES: 'projector' });
    for (let from = 0; from < n; from += 500) {
      const chunk = Math.min(500, n - from);
      await Promise.all(Array.from({ length: chunk }, () => bench.requestRun(id, task)));
    }
    await bench.untilQueued(n);
    await projector.stop();
    const service = await BenchService.start(bench.directory, concurrencyOf(slots));
    const cpuBefore = service.cpuSeconds();
    await bench.untilEnded(n);
    const end = Date.now();
    const cpu = ((service.cpuSeconds() - cpuBefore) / n) * 1e6;
    await service.stop();
    const starts = await startsOf(bench.store);
    return { rate: (n / (end - smallest(starts.values()))) * 1000, cpu };
  });
}

/** The service runs while runs are requested one by one: from the first call until all are readable as ended. */
async function endToEnd(n: number, slots: number): Promise<Measured> {
  return withStore(async (bench) => {
    const { id, task } = await bench.createTask({});
    const service = await BenchService.start(bench.directory, concurrencyOf(slots));
    // Who reads is there before the first call, as a peer's connection is.
    await bench.untilEnded(0);
    await pause(SETTLE);
    const cpuBefore = service.cpuSeconds();
    const begin = Date.now();
    let left = n;
    const caller = async (): Promise<void> => {
      while (left-- > 0) await bench.requestRun(id, task);
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    await bench.untilEnded(n);
    const end = Date.now();
    const cpu = ((service.cpuSeconds() - cpuBefore) / n) * 1e6;
    await service.stop();
    return { rate: (n / (end - begin)) * 1000, cpu };
  });
}

/**
 * Tasks of kind once, due in the same second: from each one's nominal time to the start of its first step.
 * @throws Error when the log does not say of each that it fired, was requested, started and succeeded once
 */
async function lateness(n: number, spread: number): Promise<Measured> {
  return withStore(async (bench) => {
    const service = await BenchService.start(bench.directory);
    const second = Math.ceil((Date.now() + LEAD + LEAD_EACH * n) / 1000) * 1000;
    await Promise.all(
      Array.from({ length: n }, (_, index) =>
        bench.createTask({
          schedule_kind: 'once',
          schedule_expr: toIso(second + Math.floor((index * spread) / n)),
        }),
      ),
    );
    if (Date.now() > second - SETTLE) throw new Error('the tasks were due before all were created');
    await bench.untilEnded(n);
    await service.stop();
    await checkEachOnce(bench.store, n);
    const starts = await startsOf(bench.store);
    const nominal = await nominalTimes(bench.store);
    return samplesFrom(nominal, starts, await runStartedTimes(bench.store));
  });
}

/** An idle service is asked for a run now and then: from the call to the start of its first step. */
async function latency(n: number): Promise<Measured> {
  return withStore(async (bench) => {
    const { id, task } = await bench.createTask({});
    const service = await BenchService.start(bench.directory);
    await pause(SETTLE);
    const calls = new Map<string, number>();
    for (let index = 0; index < n; index += 1) {
      const at = Date.now();
      calls.set(await bench.requestRun(id, task), at);
      await pause(25 + Math.random() * 50);
    }
    await bench.untilEnded(n);
    await service.stop();
    const starts = await startsOf(bench.store);
    return samplesFrom(calls, starts, await runStartedTimes(bench.store));
  });
}

async function withStore(work: (bench: BenchStore) => Promise<Measured>): Promise<Measured> {
  const bench = await BenchStore.open();
  try {
    return await work(bench);
  } finally {
    await bench.remove();
  }
}

function samplesFrom(
  begins: ReadonlyMap<string, number>,
  starts: ReadonlyMap<string, number>,
  started: ReadonlyMap<string, number>,
): Samples {
  const since = ([run, at]: [string, number]): number => at - (begins.get(run) ?? Number.NaN);
  return { samples: [...starts].map(since), toRunStarted: [...started].map(since) };
}

/** When the RunStarted of each run occurred. */
async function runStartedTimes(store: EventStore): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>();
  for await (const { stream, type, metadata } of everything(store)) {
    if (type === 'RunStarted')
      times.set(stream.slice('run-'.length), Date.parse(metadata.occurredAt));
  }
  return times;
}

/** When the first step of each run began: behind the durable RunStarted, as the log says it. */
async function startsOf(store: EventStore): Promise<ReadonlyMap<string, number>> {
  const starts = new Map<string, number>();
  for await (const event of everything(store)) {
    if (event.type !== 'RunSucceeded') continue;
    const [first] = event.data.steps;
    if (first) starts.set(event.stream.slice('run-'.length), Date.parse(first.started_at));
  }
  return starts;
}

/** Goes through the log: `n` tasks, and of each one fire and one run, which was requested, started and ended once. */
async function checkEachOnce(store: EventStore, n: number): Promise<void> {
  const found = new Map<string, Set<string>>(
    ['TaskCreated', 'Fired', 'RunRequested', 'RunStarted', 'RunSucceeded'].map((type) => [
      type,
      new Set(),
    ]),
  );
  for await (const { stream, type } of everything(store)) {
    const streams = found.get(type);
    if (streams === undefined) continue;
    if (streams.has(stream)) throw new Error(`there is a second ${type} in ${stream}`);
    streams.add(stream);
  }
  for (const [type, streams] of found) {
    if (streams.size !== n) throw new Error(`${streams.size} of ${n} have a ${type}`);
  }
}

async function nominalTimes(store: EventStore): Promise<ReadonlyMap<string, number>> {
  const nominal = new Map<string, number>();
  for await (const event of everything(store)) {
    if (event.type === 'Fired') nominal.set(event.data.run_id, Date.parse(event.data.nominal));
  }
  return nominal;
}

async function* everything(store: EventStore) {
  let after = BEGINNING;
  for (;;) {
    const page = await store.readAll(after, 1000);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.position;
  }
}

/** `Math.min(...values)` overflows the stack where there are many. */
function smallest(values: Iterable<number>): number {
  let least = Infinity;
  for (const value of values) least = Math.min(least, value);
  return least;
}
