import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '../../app/clock.ts';
import { BEGINNING, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import { newId } from '../../domain/ids.ts';
import { changeKey } from '../../domain/keys/key-stream.ts';
import { holdKey, releaseAll, type KeyClaim, type KeyName } from '../../domain/keys/key.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { silent } from '../../observability/telemetry.ts';
import { KeyWatch } from '../../scheduler/keys/key-watch.ts';
import { Membership } from '../../scheduler/processes/membership.ts';
import { RunQueue } from '../../scheduler/runs/run-queue.ts';
import { WatchedStore } from '../../test/scheduler/watched-store.ts';
import { BenchService, BenchStore, contextNow } from '../bench-service.ts';
import { UsesOfOneKey } from './key-uses.ts';

const KEYS = 100;

/** Uses of one key whose cost is compared: so many first, and so many last. */
const SPAN = 10_000;

/** What the same runs came to, by processes that shared the work. */
interface Drained {
  /** Runs a second, from the first start until all are readable as ended. */
  readonly rate: number;
  /** Processor time of both processes for each run, their start included. Microseconds. */
  readonly cpu: number;
  /** Events of keys for each run. */
  readonly keyEvents: number;
}

/**
 * `n` runs over 100 keys with limit 1, executed by two processes with all roles, beside the same runs without keys.
 *
 * @throws Error when the log says that two runs of one key ran at a time, or that a run has not ended
 */
export async function benchKeys(n: number): Promise<{
  readonly keyed: Drained;
  readonly free: Drained;
}> {
  const free = await drained(n, false);
  const keyed = await drained(n, true);
  return { keyed, free };
}

async function drained(n: number, keyed: boolean): Promise<Drained> {
  const bench = await BenchStore.open();
  try {
    const tasks: { readonly id: string; readonly task: LiveTask }[] = [];
    for (let index = 0; index < KEYS; index += 1) {
      const changes = keyed ? { concurrency_key: `key ${index}`, concurrency_limit: 1 } : {};
      tasks.push(await bench.createTask(changes));
    }
    const projector = await BenchService.start(bench.directory, { SVC_ROLES: 'projector' });
    const keyOf = new Map<string, string>();
    for (let from = 0; from < n; from += 500) {
      const indexes = Array.from({ length: Math.min(500, n - from) }, (_, index) => from + index);
      await Promise.all(
        indexes.map(async (index) => {
          const task = tasks[index % KEYS];
          if (task === undefined) throw new RangeError('there is no such task');
          keyOf.set(await bench.requestRun(task.id, task.task), task.id);
        }),
      );
    }
    await bench.untilQueued(n);
    await projector.stop();
    const services = await Promise.all([
      BenchService.start(bench.directory),
      BenchService.start(bench.directory),
    ]);
    await bench.untilEnded(n);
    const end = Date.now();
    const cpu = services.reduce((sum, service) => sum + service.cpuSeconds(), 0);
    await Promise.all(services.map((service) => service.stop()));
    const { start, keyEvents } = await checked(bench.store, keyed ? keyOf : null, n);
    return { rate: (n / (end - start)) * 1000, cpu: (cpu / n) * 1e6, keyEvents: keyEvents / n };
  } finally {
    await bench.remove();
  }
}

const ends = new Set(['RunSucceeded', 'RunFailed', 'RunCanceled', 'RunSkipped']);

/**
 * Goes through the log: each run has ended, and of those that share a key no two ran at a time.
 * @returns when the first run was started, and how many events of keys are left
 */
async function checked(
  store: EventStore,
  keyOf: ReadonlyMap<string, string> | null,
  n: number,
): Promise<{ readonly start: number; readonly keyEvents: number }> {
  const running = new Map<string, string>();
  let start = Infinity;
  let ended = 0;
  let keyEvents = 0;
  for await (const event of everything(store)) {
    if (event.stream.startsWith('key-')) keyEvents += 1;
    if (!event.stream.startsWith('run-')) continue;
    const run = event.stream.slice('run-'.length);
    if (event.type === 'RunStarted') start = Math.min(start, Date.parse(event.metadata.occurredAt));
    if (ends.has(event.type)) ended += 1;
    const key = keyOf?.get(run);
    if (key === undefined) continue;
    const holder = running.get(key);
    if (event.type === 'RunStarted') {
      if (holder !== undefined) throw new Error(`${run} is started while ${holder} runs`);
      running.set(key, run);
    } else if (ends.has(event.type)) running.delete(key);
  }
  if (ended !== n) throw new Error(`${ended} of ${n} runs have ended`);
  return { start, keyEvents };
}

async function* everything(store: EventStore): AsyncGenerator<RecordedEvent> {
  for (let after = BEGINNING; ;) {
    const page = await store.readAll(after, 1000);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.position;
  }
}

/** What a use of a key costs: taken for one run and given back by the one before, in one append. */
export interface UseCost {
  /** Milliseconds, and microseconds of processor time in all threads. */
  readonly milliseconds: number;
  readonly cpu: number;
}

/** What many uses of one key came to. */
export interface OneKey {
  readonly first: UseCost;
  readonly last: UseCost;
  /** Events that the key's stream still holds. */
  readonly left: number;
  /** Uses that the log tells of, each over before the next began. */
  readonly alone: number;
}

/**
 * One key, used again and again by one run after the other, as a worker does it and with what follows the keys in a worker.
 *
 * @param uses of the key, from {@link SPAN} twice on
 * @throws Error when the log says that two runs had the key at a time, or that one had it that did not use it
 */
export async function benchOneKey(uses: number): Promise<OneKey> {
  const span = Math.min(SPAN, Math.floor(uses / 2));
  const bench = await BenchStore.open();
  const stop = new AbortController();
  try {
    const { store } = bench;
    const name: KeyName = { kind: 'concurrency', owner: newId(Date.now()), key: 'one' };
    const log = new UsesOfOneKey();
    const following = follow(bench, log, stop.signal);
    await following.started;
    let before = '';
    const use = async (): Promise<void> => {
      const context = contextNow();
      const claim = claimOf(context.commandId, context.now);
      await changeKey(store, name, context, (state) => {
        const released = releaseAll(state, [before]);
        const { events, outcome } = holdKey(released.state, claim, context.now);
        return { events: [...released.events, ...events], answer: outcome };
      });
      before = claim.run_id;
    };
    const first = await measured(span, use);
    for (let n = 2 * span; n < uses; n += 1) await use();
    const last = await measured(span, use);
    // The check reads what follows the log, which is behind by as much as is on its way.
    while (log.uses < uses && log.fault === null) await pause(5);
    stop.abort();
    await following.ended;
    if (log.fault !== null) throw new Error(log.fault);
    const kept = await store.readStream(streams.key(name.kind, name.owner, name.key));
    return { first, last, left: kept.length, alone: log.uses };
  } finally {
    stop.abort();
    await bench.remove();
  }
}

const claimOf = (run_id: string, since: number): KeyClaim => ({
  run_id,
  task_id: run_id,
  trigger: 'manual',
  priority: 5,
  since,
  limit: 1,
  attempt: 1,
});

/**
 * What a worker does beside: it follows the keys, and cuts their streams. All that it is told goes to the check first, so
 * that nothing is cut unseen.
 */
function follow(
  { stores }: BenchStore,
  log: UsesOfOneKey,
  signal: AbortSignal,
): { readonly started: Promise<void>; readonly ended: Promise<void> } {
  const { readModel, coordination } = stores;
  const store = new WatchedStore(stores.store);
  store.onMessage = (message) => {
    if (message.kind === 'events') for (const event of message.events) log.take(event);
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

async function measured(times: number, use: () => Promise<void>): Promise<UseCost> {
  const begin = performance.now();
  const { user, system } = process.cpuUsage();
  for (let n = 0; n < times; n += 1) await use();
  const after = process.cpuUsage();
  return {
    milliseconds: (performance.now() - begin) / times,
    cpu: (after.user + after.system - user - system) / times,
  };
}
