import { expect } from 'chai';
import { quotasFrom } from '../../../domain/namespaces/quotas.ts';
import { silent } from '../../../observability/telemetry.ts';
import { RunRate } from '../../../scheduler/fairness/run-rate.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const START = Date.parse('2026-03-02T00:00:10.000Z');
const MINUTE = 60_000;

describe('the quota of runs in a minute', () => {
  const clock = new VirtualClock(START);
  const sums = new Map<string, number>();
  const store = {
    isAway: false as boolean,
    count: (name: string, by: number, window: number) => {
      if (store.isAway) return Promise.reject(new Error('away'));
      const begun = Math.floor(clock.now() / window);
      const sum = (sums.get(`${name} ${begun}`) ?? 0) + by;
      sums.set(`${name} ${begun}`, sum);
      return Promise.resolve({ sum, remaining: (begun + 1) * window - clock.now() });
    },
  } satisfies Pick<Coordination, 'count'> & { isAway: boolean };
  const events = { inLog: 0 };
  const putBack: (readonly [string, number])[] = [];
  const queue = { putBack: ({ id }: QueuedRun, at: number) => void putBack.push([id, at]) };
  const rateOf = (): RunRate => {
    const quotas = quotasFrom({ small: { runs_per_minute: 2 }, full: { events: 10 } });
    const eventsOf = () => Promise.resolve(events.inLog);
    return new RunRate({ coordination: store, queue, clock, telemetry: silent, quotas, eventsOf });
  };
  const run = (id: string, fields: Partial<QueuedRun> = {}): QueuedRun =>
    ({ id, namespace: 'small', startedAt: null, ...fields }) as QueuedRun;
  const nextMinute = START + 50_000;

  beforeEach(async () => {
    sums.clear();
    putBack.length = 0;
    store.isAway = false;
    if (clock.now() > START) clock.jumpTo(START);
  });

  it('makes a run over it wait for the next minute, across all processes', async () => {
    const [one, other] = [rateOf(), rateOf()];
    expect(await one.admit(run('a'))).to.deep.equal({ kind: 'go' });
    expect(await other.admit(run('b'))).to.deep.equal({ kind: 'go' });
    expect(await one.admit(run('c'))).to.deep.equal({ kind: 'wait', until: nextMinute });
    clock.jumpTo(nextMinute);
    expect(await one.admit(run('c'))).to.deep.equal({ kind: 'go' });
  });

  it('puts back later runs without counting them', async () => {
    const rate = rateOf();
    for (const id of ['a', 'b', 'c']) await rate.admit(run(id));
    expect(rate.park(run('d'))).to.equal(true);
    expect(putBack).to.deep.equal([['d', nextMinute]]);
    expect([...sums.values()]).to.deep.equal([3]);
    clock.jumpTo(nextMinute);
    expect(rate.park(run('d'))).to.equal(false);
  });

  it('counts a run once, however often it is admitted, and not if it has started before', async () => {
    const rate = rateOf();
    const waiting = run('a');
    await rate.admit(waiting);
    await rate.admit(waiting);
    expect(await rate.admit(run('b', { startedAt: START - MINUTE }))).to.deep.equal({ kind: 'go' });
    expect([...sums.values()]).to.deep.equal([1]);
    await rate.admit(run('c'));
    await rate.admit(run('d'));
    expect(rate.park(waiting)).to.equal(false);
    expect(rate.park(run('e', { startedAt: START }))).to.equal(false);
  });

  it('does not affect other namespaces', async () => {
    const rate = rateOf();
    for (const id of ['a', 'b', 'c']) await rate.admit(run(id));
    const elsewhere = run('x', { namespace: 'other' });
    expect(rate.admit(elsewhere)).to.deep.equal({ kind: 'go' });
    expect([rate.park(elsewhere), rate.limits('other')]).to.deep.equal([false, false]);
  });

  it('makes runs wait while the namespace has reached its quota of events in the log', async () => {
    const rate = rateOf();
    events.inLog = 10;
    const wait = { kind: 'wait', until: START + 5000 };
    expect(await rate.admit(run('a', { namespace: 'full' }))).to.deep.equal(wait);
    expect(rate.park(run('b', { namespace: 'full' }))).to.equal(true);
    expect(rate.limits('full')).to.equal(true);
    events.inLog = 9;
    clock.jumpTo(START + 5000);
    expect(rate.park(run('b', { namespace: 'full' }))).to.equal(false);
    expect(await rate.admit(run('b', { namespace: 'full' }))).to.deep.equal({ kind: 'go' });
  });

  it('starts runs without counting them while the coordination store is unavailable', async () => {
    const rate = rateOf();
    store.isAway = true;
    for (const id of ['a', 'b', 'c']) {
      expect(await rate.admit(run(id))).to.deep.equal({ kind: 'go' });
    }
  });

  it('does not wait longer than a minute after the clock was set back', async () => {
    const rate = rateOf();
    for (const id of ['a', 'b', 'c']) await rate.admit(run(id));
    clock.jumpTo(START - 60 * MINUTE);
    expect(rate.park(run('d'))).to.equal(false);
  });
});
