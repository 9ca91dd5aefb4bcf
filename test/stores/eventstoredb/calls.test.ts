import { expect } from 'chai';
import { setMaxListeners } from 'node:events';
import { BEGINNING, type EventStore } from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import {
  caughtUp,
  numbered,
  onWorkbench,
  take,
  upTo,
} from '../../support/eventstoredb-server/workbench.ts';
import { deferred, eventually } from '../../support/signals.ts';

/** About as many prefixes as a whole process follows. */
const PREFIXES = ['task-', 'fires-', 'run-', 'key-', 'topic-', 'worker-', 'agent-', 'webhook-'];

/** Longer than a busy machine takes to deliver an event after the response to its append. */
const PROBE_MS = 500;

describe('the calls of a process to EventStoreDB', () => {
  const bench = onWorkbench();
  let store: EventStore;
  /** The service's own counts, by kind of call. */
  let counted: Map<string, number>;
  let stop: AbortController;
  let ended: Promise<unknown>[];
  beforeEach(async () => {
    // The first heartbeat would come after the test.
    const timings = { heartbeatMs: 60_000, probeMs: PROBE_MS, silenceMs: 10_000 };
    counted = new Map();
    const telemetry: Telemetry = {
      ...silent,
      count: (name, { call = '' } = {}) => {
        if (name === 'eventstore_calls_total') counted.set(call, (counted.get(call) ?? 0) + 1);
      },
    };
    store = await bench().open({ timings, telemetry });
    stop = new AbortController();
    setMaxListeners(0, stop.signal);
    ended = [];
  });
  afterEach(async () => {
    stop.abort();
    await Promise.all(ended);
  });

  /** Follows one kind of stream until the end of the test. Resolves when it has caught up. */
  function follow(prefix: string, after: string, onEvents: () => void = () => {}): Promise<void> {
    const level = deferred();
    const following = store.subscribe({ after, prefixes: [prefix], signal: stop.signal });
    const taken = take(following, (received) => {
      if (caughtUp(received)) level.resolve();
      else onEvents();
      return false;
    });
    ended.push(taken.catch(() => undefined));
    return level.promise;
  }

  it('are one subscription, however many followers and waiters there are', async () => {
    await store.append('run-1', [numbered(0)], 'none');
    await Promise.all(PREFIXES.map((prefix) => follow(prefix, BEGINNING)));
    const after = await store.head();
    let heard = 0;
    const streams = upTo(20).map((n) => `run-${n + 10}`);
    await Promise.all(streams.map((stream) => follow(stream, after, () => (heard += 1))));
    for (const stream of streams) await store.append(stream, [numbered(0)], 'none');
    await eventually(() => heard === 20);
    expect(bench().server.subscribed).to.equal(1);
  });

  it('include no read of the log while nothing is behind', async () => {
    await Promise.all(PREFIXES.map((prefix) => follow(prefix, BEGINNING)));
    let heard = 0;
    const level = follow('run-1', await store.head(), () => (heard += 1));
    await level;
    const { server } = bench();
    // Finds out where the log ends, once.
    await store.append('run-1', [numbered(0)], 'any');
    const reads = server.readsOfLog.length;
    for (const n of upTo(50)) await store.append('run-1', [numbered(n)], 'any');
    await eventually(() => heard > 0 && server.subscriptions[0]?.sent === 51);
    // Twice as long as the subscription may lack an event that this process has appended.
    const end = performance.now() + 2 * PROBE_MS;
    await eventually(() => performance.now() > end);
    expect(server.readsOfLog.length).to.equal(reads);
  });

  it('are counted by kind, as the server counts them', async () => {
    await store.append('run-1', [numbered(0)], 'none');
    await store.append('run-1', [numbered(1)], 0);
    expect(await store.readStream('run-1')).to.have.lengthOf(2);
    await follow('run-', BEGINNING);
    const { server } = bench();
    const ends = server.readsOfLog.filter(({ backwards }) => backwards).length;
    expect(Object.fromEntries(counted)).to.deep.equal({
      append: server.appends.length,
      read_stream: server.reads - server.readsOfLog.length,
      read_log: server.readsOfLog.length - ends,
      find_end: ends,
      subscribe: server.subscribed,
    });
    expect(server.appends).to.have.lengthOf(2);
  });

  it('are one read of an old log for all followers that start together', async () => {
    for (const n of upTo(30)) {
      const events = upTo(100).map((index) => numbered(index));
      await store.append(`${PREFIXES[n % PREFIXES.length]}${n}`, events, 'none');
    }
    const { server } = bench();
    const before = server.readsOfLog.length;
    await Promise.all(PREFIXES.map((prefix) => follow(prefix, BEGINNING)));
    const pages = server.readsOfLog.slice(before).filter(({ backwards }) => !backwards);
    // Two pages hold the 3,000 events.
    expect(pages).to.have.lengthOf(2);
  });
});
