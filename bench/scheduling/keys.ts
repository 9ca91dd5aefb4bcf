import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '../../app/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { newId } from '../../domain/ids.ts';
import { changeKey } from '../../domain/keys/key-stream.ts';
import { holdKey, releaseAll, type KeyClaim, type KeyName } from '../../domain/keys/key.ts';
import { streams } from '../../domain/streams.ts';
import { silent } from '../../observability/telemetry.ts';
import { KeyWatch } from '../../scheduler/keys/key-watch.ts';
import { Membership } from '../../scheduler/processes/membership.ts';
import { RunQueue } from '../../scheduler/runs/run-queue.ts';
import { WatchedStore } from '../../test/scheduler/watched-store.ts';
import { BenchService, contextNow, withBenchStore, type BenchStore } from '../bench-service.ts';
import { allEvents, inChunks } from '../log.ts';
import { atLeast, lessThan, type Benchmark } from '../benchmark.ts';
import { KeyUseCheck } from './key-use-check.ts';

const KEYS = 100;

/** Runs over 100 keys with limit 1, by two processes with all roles, beside the same runs without keys. */
export const manyKeys: Benchmark = {
  targets: [atLeast('ratio', 0.5, 'beside the same without keys')],
  count: ({ keyed }) => keyed,
  async measure({ keyed: n }) {
    const free = await drain(n, false);
    const keyed = await drain(n, true);
    return {
      'runs/s': keyed.rate,
      'runs/s without keys': free.rate,
      ratio: keyed.rate / free.rate,
      'cpu us a run': keyed.cpu,
      'cpu us without keys': free.cpu,
      'key events a run': keyed.keyEvents,
    };
  },
};

/**
 * Returns runs a second, from the first start until all are readable as ended; microseconds of processor time of both
 * processes for each run, their start included; and events of keys for each run.
 */
function drain(
  n: number,
  keyed: boolean,
): Promise<Readonly<Record<'rate' | 'cpu' | 'keyEvents', number>>> {
  return withBenchStore(async (bench) => {
    const tasks = await inChunks(KEYS, 1, (index) =>
      bench.createTask(keyed ? { concurrency_key: `key ${index}`, concurrency_limit: 1 } : {}),
    );
    const projector = await BenchService.start(bench.directory, { SVC_ROLES: 'projector' });
    const keyOf = new Map<string, string>();
    await inChunks(n, 500, async (index) => {
      const task = tasks[index % KEYS];
      if (task === undefined) throw new RangeError('there is no such task');
      keyOf.set(await bench.requestRun(task.id, task.task), task.id);
    });
    await bench.untilRuns('queued', n);
    await projector.stop();
    const services = await Promise.all([
      BenchService.start(bench.directory),
      BenchService.start(bench.directory),
    ]);
    await bench.untilRuns('succeeded', n);
    const end = Date.now();
    const cpu = services.reduce((sum, service) => sum + service.cpuSeconds(), 0);
    await Promise.all(services.map((service) => service.stop()));
    const { start, keyEvents } = await checkRuns(bench.store, keyed ? keyOf : null, n);
    return { rate: (n / (end - start)) * 1000, cpu: (cpu / n) * 1e6, keyEvents: keyEvents / n };
  });
}

const endings = new Set(['RunSucceeded', 'RunFailed', 'RunCanceled', 'RunSkipped']);

/**
 * Returns when the first run started, and the number of key events left.
 * @throws Error if a run did not end, or two runs of a key overlapped
 */
async function checkRuns(
  store: EventStore,
  keyOf: ReadonlyMap<string, string> | null,
  n: number,
): Promise<{ readonly start: number; readonly keyEvents: number }> {
  const running = new Map<string, string>();
  let start = Infinity;
  let [ended, keyEvents] = [0, 0];
  for await (const { stream, type, metadata } of allEvents(store)) {
    if (stream.startsWith('key-')) keyEvents += 1;
    if (!stream.startsWith('run-')) continue;
    const run = stream.slice('run-'.length);
    if (type === 'RunStarted') start = Math.min(start, Date.parse(metadata.occurredAt));
    if (endings.has(type)) ended += 1;
    const key = keyOf?.get(run);
    if (key === undefined) continue;
    if (type === 'RunStarted') {
      const holder = running.get(key);
      if (holder !== undefined) throw new Error(`${run} started while ${holder} was running`);
      running.set(key, run);
    } else if (endings.has(type)) running.delete(key);
  }
  if (ended !== n) throw new Error(`${ended} of ${n} runs have ended`);
  return { start, keyEvents };
}

/** The cost of this many first uses and of this many last uses is compared. */
const SPAN = 10_000;

/** One key, used by one run after the other as by a worker, together with a worker's other work. */
export const oneKey: Benchmark = {
  targets: [
    lessThan('last/first', 1.25, 'the past costs nothing'),
    lessThan('events left', 1_000, 'key streams are truncated'),
  ],
  count: ({ uses }) => uses,
  measure: ({ uses }) =>
    withBenchStore(async (bench) => {
      const { store } = bench;
      const span = Math.min(SPAN, Math.floor(uses / 2));
      const stop = new AbortController();
      const name: KeyName = { kind: 'concurrency', owner: newId(Date.now()), key: 'one' };
      const check = new KeyUseCheck();
      try {
        const following = followKeys(bench, check, stop.signal);
        await following.started;
        let previous = '';
        const use = async (): Promise<void> => {
          const context = contextNow();
          const claim = claimOf(context.commandId, context.now);
          await changeKey(store, name, context, (state) => {
            const released = releaseAll(state, [previous]);
            const { events, outcome } = holdKey(released.state, claim, context.now);
            return { events: [...released.events, ...events], answer: outcome };
          });
          previous = claim.run_id;
        };
        const first = await costOf(span, use);
        for (let n = 2 * span; n < uses; n += 1) await use();
        const last = await costOf(span, use);
        // The check follows the log with a delay.
        while (check.uses < uses && check.violation === null) await pause(5);
        stop.abort();
        await following.ended;
        if (check.violation !== null) throw new Error(check.violation);
        const left = await store.readStream(streams.key(name.kind, name.owner, name.key));
        return {
          'first uses ms': first.milliseconds,
          'last uses ms': last.milliseconds,
          'first uses cpu us': first.cpu,
          'last uses cpu us': last.cpu,
          'last/first': last.cpu / first.cpu,
          'events left': left.length,
          'uses, one at a time': check.uses,
        };
      } finally {
        stop.abort();
      }
    }),
};

const claimOf = (run_id: string, since: number): KeyClaim => ({
  run_id,
  task_id: run_id,
  trigger: 'manual',
  priority: 5,
  since,
  limit: 1,
  attempt: 1,
});

/** Follows the keys and truncates their streams, as a worker does. The check sees every event before it is truncated. */
function followKeys(
  { stores }: BenchStore,
  check: KeyUseCheck,
  signal: AbortSignal,
): { readonly started: Promise<void>; readonly ended: Promise<void> } {
  const { readModel, coordination } = stores;
  const store = new WatchedStore(stores.store);
  store.onMessage = (message) => {
    if (message.kind === 'events') for (const event of message.events) check.take(event);
  };
  const clock = new SystemClock();
  const telemetry = silent;
  const about = { id: 'bench', lease: 30_000, about: { roles: ['worker'] } };
  const membership = new Membership({ ...about, coordination, clock, telemetry });
  const queue = new RunQueue(store, readModel, clock, telemetry);
  const watch = new KeyWatch({ store, queue, membership, clock, telemetry });
  let ended: Promise<void> = Promise.resolve();
  const started = new Promise<void>((resolve, failed) => {
    ended = watch.follow(signal, resolve);
    ended.catch(failed);
  });
  return { started, ended };
}

/** The milliseconds, and microseconds of processor time of all threads, of one use. */
async function costOf(
  times: number,
  use: () => Promise<void>,
): Promise<{ readonly milliseconds: number; readonly cpu: number }> {
  const start = performance.now();
  const before = process.cpuUsage();
  for (let n = 0; n < times; n += 1) await use();
  const { user, system } = process.cpuUsage(before);
  return { milliseconds: (performance.now() - start) / times, cpu: (user + system) / times };
}
