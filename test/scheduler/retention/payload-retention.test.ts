import { expect } from 'chai';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { triggeredRunId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { Retention } from '../../../scheduler/retention/retention.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { ProjectorHarness } from '../../projections/projector-harness.ts';
import { failure, request, success } from '../../projections/recorded.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';

const DAY = 86_400_000;
/** The first events are from 1 March, 8:00. */
const NOON = Date.parse('2026-03-01T12:00:00.000Z');

/** A clock that a test sets, whose sleeps return at once. */
class SetClock extends QuickClock {
  instant = NOON;
  override now(): number {
    return this.instant;
  }
}

describe('the retention of payloads', () => {
  const eventId = 'event-1';
  const [a, b] = [triggeredRunId('a', eventId), triggeredRunId('b', eventId)];
  const payload = { text: 'x'.repeat(2_000) };
  let harness: ProjectorHarness;
  let coordination: Coordination;
  let clock: SetClock;
  let retention: Retention;
  const closing: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    const directory = await makeTemporaryDirectory();
    coordination = await openSqliteCoordination({ directory: directory.path, telemetry: silent });
    closing.push(
      () => harness.close(),
      () => coordination.close(),
      () => directory.remove(),
    );
    clock = new SetClock();
    retention = another();
    const triggered_tasks = ['a', 'b'];
    harness.log.add(streams.payload(eventId), 'PayloadStored', {
      event_id: eventId,
      payload,
      triggered_tasks,
    });
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  /** Runs are kept for two days. */
  const another = (): Retention => {
    const limits = { deliveries: null, sessions: null, refusals: null, requests: null };
    const { store } = harness;
    return new Retention({
      store,
      coordination,
      telemetry: silent,
      clock,
      leadership: { leads: true, fence: 1 },
      name: 'test',
      limits: { ...limits, runs: 2 * DAY },
    });
  };

  const ask = (run: string, fields: Partial<DataOf<'RunRequested'>> = {}): void => {
    const about = { topic: 'orders.new', source_agent_id: 'agent-1' };
    const event = { id: eventId, ...about, published_at: '2026-03-01T08:00:00.000Z' };
    harness.log.add(streams.run(run), 'RunRequested', request({ event, ...fields }));
  };
  const succeed = (run: string): void => {
    harness.log.add(streams.run(run), 'RunSucceeded', success());
  };

  /** Runs a pass at noon on each of the first days. */
  const live = async (days: number, by = retention): Promise<void> => {
    for (let day = 0; day < days; day += 1) {
      await by.pass(new AbortController().signal);
      clock.instant += DAY;
    }
  };
  const isStored = async (): Promise<boolean> =>
    (await harness.store.readStream(streams.payload(eventId))).length > 0;
  const removals = async (): Promise<readonly DataOf<'RecordsRemoved'>[]> =>
    (await harness.store.readStream(streams.retention())).flatMap((event) =>
      event.type === 'RecordsRemoved' && event.data.kind === 'payloads' ? [event.data] : [],
    );

  it('removes a payload after the last run that needs it, and records it', async () => {
    ask(a);
    succeed(a);
    ask(b);
    await harness.append();
    await live(5);
    harness.log.pass(5 * DAY);
    succeed(b);
    await harness.append();
    await live(2);
    expect(await harness.store.readStream(streams.run(a))).to.have.lengthOf(1);
    expect(await isStored()).to.equal(true);
    await live(4);
    expect(await isStored()).to.equal(false);
    const [removed, ...more] = await removals();
    expect(more).to.deep.equal([]);
    expect(removed).to.deep.include({ records: 1, events: 1, audited: [] });
    expect(removed?.streams).to.deep.equal([{ stream: streams.payload(eventId), before: 1 }]);
  });

  it('keeps a payload for a run that has not been requested yet', async () => {
    ask(a);
    succeed(a);
    await harness.append();
    await live(8);
    expect(await isStored()).to.equal(true);
  });

  it('keeps a payload for a retry of a run that it has removed', async () => {
    ask(a);
    ask(b);
    succeed(b);
    harness.log.add(streams.run(a), 'RunFailed', failure());
    harness.log.add(streams.run(a), 'RunRetried', { run_id: 'retry-1', from: 'start' });
    harness.log.add(streams.payload(eventId), 'PayloadReferenced', { run_id: 'retry-1' });
    ask('retry-1', { retry_of: a });
    await harness.append();
    await live(5);
    harness.log.pass(5 * DAY);
    succeed('retry-1');
    await harness.append();
    await live(2);
    expect(await harness.store.readStream(streams.run(a))).to.have.lengthOf(1);
    expect(await isStored()).to.equal(true);
    await live(4);
    expect(await isStored()).to.equal(false);
  });

  it('does not keep a payload for a retry that was lost in a crash', async () => {
    for (const run of [a, b]) {
      ask(run);
      succeed(run);
    }
    harness.log.add(streams.payload(eventId), 'PayloadReferenced', { run_id: 'lost' });
    await harness.append();
    await live(6);
    expect(await isStored()).to.equal(false);
  });

  it('continues in another process if it was killed before the payload', async () => {
    for (const run of [a, b]) {
      ask(run);
      succeed(run);
    }
    await harness.append();
    const { store } = harness;
    const append = store.append.bind(store);
    store.append = async (stream, events, expected) => {
      const [first] = events;
      if (first?.type === 'RecordsRemoved' && first.data.kind === 'payloads') {
        throw new Error('killed');
      }
      return append(stream, events, expected);
    };
    const failed = await live(6).then(
      () => null,
      (error: unknown) => error,
    );
    expect(String(failed)).to.equal('Error: killed');
    expect(await isStored()).to.equal(true);
    store.append = append;
    await live(2, another());
    expect(await isStored()).to.equal(false);
  });
});
