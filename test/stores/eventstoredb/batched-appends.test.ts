import { expect } from 'chai';
import {
  EventStoreError,
  type AppendResult,
  type EventStore,
  type NewEvent,
} from '../../../domain/event-store.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { numbered, onWorkbench, upTo } from '../../support/eventstoredb-server/workbench.ts';
import { eventually } from '../../support/signals.ts';

/** Long timeouts, for appends that a test holds back. */
const patient = { appendAttemptMs: 10_000, appendOverallMs: 15_000 } as const;

describe('appends in flight on the shared stream to EventStoreDB', () => {
  const bench = onWorkbench();

  /** Starts appends of one event each to separate streams, numbered from 0. */
  function appendMany(store: EventStore, count: number): Promise<AppendResult>[] {
    return upTo(count).map((n) => store.append(`task-${n}`, [numbered(n)], 'none'));
  }

  /** Starts appends and holds their responses back, so that all are in flight. */
  async function inFlight(store: EventStore, count: number): Promise<Promise<AppendResult>[]> {
    const { log, appends } = bench().server;
    log.holdBack();
    const running = appendMany(store, count);
    await eventually(() => appends.length === count, { what: 'the appends to arrive' });
    return running;
  }

  /** The errors that appends reject with. */
  async function errorsOf(running: readonly Promise<unknown>[]): Promise<EventStoreError[]> {
    const settled = await Promise.allSettled(running);
    return settled.map((one) => {
      expect(one.status).to.equal('rejected');
      return (one as PromiseRejectedResult).reason as EventStoreError;
    });
  }

  it('reach the server in order', async () => {
    const store = await bench().open({ timings: patient });
    const results = await Promise.all(
      upTo(50).map((n) => store.append('task-1', [numbered(n)], n === 0 ? 'none' : n - 1)),
    );
    expect(results.map(({ revision }) => revision)).to.deep.equal(upTo(50));
    expect(bench().server.appends).to.have.lengthOf(50);
  });

  it('share one stream, however many they are', async () => {
    const store = await bench().open({ timings: patient });
    const results = await Promise.all(appendMany(store, 2_000));
    expect(results.every(({ revision, duplicate }) => revision === 0 && !duplicate)).to.equal(true);
    const { log, batchStreams } = bench().server;
    expect(batchStreams).to.equal(1);
    expect(new Set(log.all.map(({ stream }) => stream)).size).to.equal(2_000);
  });

  it('are limited in number, and the others wait', async () => {
    const store = await bench().open({ timings: patient });
    const { log, appends } = bench().server;
    log.holdBack();
    const running = appendMany(store, 700);
    await eventually(() => appends.length === 500, { what: 'the first appends to arrive' });
    // The connection still serves other calls, which arrive after everything sent before.
    await store.ping();
    expect(appends).to.have.lengthOf(500);
    log.show();
    expect(await Promise.all(running)).to.have.lengthOf(700);
  });

  it('send the server a time limit for each', async () => {
    const store = await bench().open({ timings: { appendAttemptMs: 2_750 } });
    await store.append('task-1', [numbered(1)], 'none');
    expect(bench().server.appends[0]?.deadlineMs).to.equal(2_750);
  });

  for (const how of ['error', 'clean-end'] as const) {
    it(`are written once each when the stream breaks (${how})`, async () => {
      const store = await bench().open({ timings: patient });
      const running = await inFlight(store, 20);
      const { server } = bench();
      const broken = performance.now();
      server.breakBatchStreams(how);
      server.log.show();
      const results = await Promise.all(running);
      expect(performance.now() - broken, 'no deadline passed').to.be.lessThan(9_000);
      expect(results.every(({ revision, duplicate }) => revision === 0 && !duplicate)).to.equal(
        true,
      );
      expect(server.log.all).to.have.lengthOf(20);
      expect(server.batchStreams).to.equal(2);
      expect(server.appends.every(({ expected }) => expected === -1)).to.equal(true);
    });
  }

  it('have an unknown outcome when the stream breaks again and again', async () => {
    const store = await bench().open({ timings: { appendOverallMs: 50 } });
    await store.head();
    const { faults, log } = bench().server;
    faults.onNextAppends(...upTo(500).map(() => 'unavailable-after-writing' as const));
    const errors = await errorsOf(appendMany(store, 3));
    expect(errors.map(({ code, repeated }) => [code, repeated])).to.deep.equal(
      upTo(3).map(() => ['OUTCOME_UNKNOWN', true]),
    );
    expect(log.all.length).to.be.at.least(1);
  });

  it('do not open new streams without a pause at a server that breaks each of them', async () => {
    const store = await bench().open({
      timings: { appendOverallMs: 1, firstPauseMs: 120, longestPauseMs: 120 },
    });
    await store.head();
    bench().server.faults.onNextAppends(...upTo(6).map(() => 'lost-before-writing' as const));
    const begun = performance.now();
    // Each append fails with its first stream.
    for (const n of upTo(6)) await errorsOf([store.append(`task-${n}`, [numbered(n)], 'none')]);
    expect(bench().server.batchStreams).to.equal(6);
    // Streams are at least half of the pause apart.
    expect(performance.now() - begun).to.be.at.least(5 * 58);
  });

  for (const how of ['error', 'clean-end'] as const) {
    it(`do not fail if the stream ends while it is idle (${how})`, async () => {
      const store = await bench().open({ timings: patient });
      await store.append('task-1', [numbered(1)], 'none');
      bench().server.breakBatchStreams(how);
      await eventually(() => bench().server.openBatchStreams === 0);
      const begun = performance.now();
      await store.append('task-1', [numbered(2)], 0);
      expect(performance.now() - begun, 'no deadline passed').to.be.lessThan(9_000);
      expect(bench().server.appends).to.have.lengthOf(2);
      expect(bench().server.batchStreams).to.equal(2);
    });
  }

  it('each have a deadline, and a stream that misses one is replaced', async () => {
    const store = await bench().open({ timings: { appendAttemptMs: 2_000 } });
    await store.append('first', [numbered(0)], 'none');
    const { server } = bench();
    server.faults.onNextAppends('silent-after-writing');
    const late = store.append('late', [numbered(1)], 'none');
    const others = await Promise.all(appendMany(store, 10));
    expect(others.every(({ duplicate }) => !duplicate)).to.equal(true);
    expect(await late).to.include({ revision: 0, duplicate: false });
    const counts = new Map<string, number>();
    for (const { stream } of server.appends) counts.set(stream, (counts.get(stream) ?? 0) + 1);
    expect(counts.get('late')).to.equal(2);
    counts.delete('late');
    expect(new Set(counts.values())).to.deep.equal(new Set([1]));
    expect(server.batchStreams).to.equal(2);
    await eventually(() => server.openBatchStreams === 1, { what: 'the first stream to end' });
  });

  it('all fail when the server rejects the user', async () => {
    const store = await bench().open({ timings: patient });
    bench().server.faults.refusesUser = true;
    const errors = await errorsOf(appendMany(store, 5));
    for (const error of errors) {
      expect(error).to.include({ code: 'UNAVAILABLE', repeated: false });
      expect(error.message).to.include('rejected');
    }
    expect(bench().server.batchStreams).to.equal(1);
  });

  it('use single calls as soon as the server turns out to lack the stream', async () => {
    const { server } = bench();
    server.faults.lacksBatchAppend = true;
    const store = await bench().open({ timings: patient });
    expect(await Promise.all(appendMany(store, 30))).to.have.lengthOf(30);
    await store.append('task-99', [numbered(1)], 'none');
    expect(server.batchStreams).to.equal(1);
    expect(server.appends.some(({ batched }) => batched)).to.equal(false);
  });

  it('use the stream once a server that lacked it has been upgraded', async () => {
    bench().server.faults.lacksBatchAppend = true;
    const store = await bench().open({ timings: { ...patient, connectMs: 4_000 } });
    await store.append('task-1', [numbered(1)], 'none');
    bench().server.stop();
    await bench().restart();
    await store.append('task-1', [numbered(2)], 0);
    expect(bench().server.appends.map(({ batched }) => batched)).to.deep.equal([true]);
  });

  it('do not wait behind a large append', async () => {
    const store = await bench().open({ timings: patient });
    const large = upTo(3).map((n) => ({
      ...numbered(n),
      data: { filling: 'x'.repeat(400_000) },
    })) as unknown as NewEvent[];
    const [error] = await errorsOf([store.append('large', large, 'none')]);
    expect(error?.code).to.equal('TOO_LARGE');
    await store.append('small', [numbered(1)], 'none');
    const { appends } = bench().server;
    expect(appends.map(({ stream, batched }) => [stream, batched])).to.deep.equal([
      ['large', false],
      ['small', true],
    ]);
  });

  it('settle before the store closes, and the stream ends with it', async () => {
    const store = await bench().open({ timings: patient });
    const running = await inFlight(store, 20);
    const closed = store.close();
    bench().server.log.show();
    expect(await Promise.all(running)).to.have.lengthOf(20);
    await closed;
    await eventually(() => bench().server.openBatchStreams === 0, { what: 'the stream to end' });
  });

  it('follow the leader when it changes, and are each written once', async () => {
    const old = bench().server;
    const url = `esdb+discover://127.0.0.1:${old.port}?tls=false`;
    const store = await bench().open({ url, timings: patient });
    old.faults.onNextAppends(...upTo(10).map(() => 'silent-after-writing' as const));
    const running = appendMany(store, 10);
    await eventually(() => old.appends.length === 10, { what: 'the appends to arrive' });
    const leader = await EventStoreDbServer.start({ log: old.log });
    try {
      old.leaderPort = leader.port;
      old.faults.onNextAppends('not-leader');
      running.push(store.append('task-10', [numbered(10)], 'none'));
      const results = await Promise.all(running);
      expect(results.every(({ duplicate }) => !duplicate)).to.equal(true);
      expect(old.log.all).to.have.lengthOf(11);
      expect(new Set(leader.appends.map(({ stream }) => stream)).size).to.equal(11);
      expect(leader.appends.every(({ requiresLeader }) => requiresLeader)).to.equal(true);
    } finally {
      await store.close();
      leader.stop();
    }
  });

  it('have an unknown outcome if a follower rejects several, but a certain one if it rejects a single append', async () => {
    const { port, faults } = bench().server;
    const url = `esdb+discover://127.0.0.1:${port}?tls=false`;
    const store = await bench().open({ url, timings: { appendOverallMs: 100 } });
    await store.head();
    const never = upTo(1_000).map(() => 'not-leader' as const);
    faults.onNextAppends(...never);
    const [alone] = await errorsOf([store.append('task-1', [numbered(1)], 'none')]);
    expect(alone).to.include({ code: 'UNAVAILABLE', repeated: true });
    expect(alone?.message).to.include('not-leader');
    const together = await errorsOf(appendMany(store, 2));
    expect(together.map(({ code }) => code)).to.deep.equal(['OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN']);
  });

  it('have a certain outcome if the server did not accept them', async () => {
    const store = await bench().open();
    const [first, second] = [numbered(1), numbered(2)];
    await store.append('task-1', [first], 'none');
    bench().server.faults.onNextAppends('unavailable-before-writing');
    const [error] = await errorsOf([store.append('task-1', [first, second], 'any')]);
    expect(error?.code).to.equal('CONFLICT');
  });
});
