import { expect } from 'chai';
import { runsProjection } from '../../../projections/views/runs.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { withWrites } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request, success } from '../recorded.ts';

const leased_until = '2026-03-01T09:00:00.000Z';

describe('a view under load', () => {
  let harness: ProjectorHarness;

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
  });
  afterEach(() => harness.close());

  /** A view that has just taken a batch of `count` events, and its number of writes so far. */
  async function underLoad(
    count: number,
  ): Promise<{ readonly clock: VirtualClock; readonly writes: () => number }> {
    const { log, store } = harness;
    const clock = new VirtualClock(leased_until);
    let writes = 0;
    const readModel = withWrites(harness.readModel, async (_name, _batch, go) => {
      writes += 1;
      await go();
    });
    harness.start([runsProjection], { clock, readModel, gatherMs: 50 });
    log.add('run-first', 'RunRequested', request());
    await harness.reached(runsProjection, await harness.append());
    const many = [log.add('run-many', 'RunRequested', request())];
    for (let attempt = 1; attempt < count; attempt += 1) {
      many.push(log.add('run-many', 'RunStarted', { worker: 'w', attempt, leased_until }));
    }
    await store.append('run-many', many, 'any');
    await harness.reached(runsProjection, await store.head());
    return { clock, writes: () => writes };
  }

  it('gathers events after a large batch, and writes them together', async () => {
    const { log, store } = harness;
    const { clock, writes } = await underLoad(50);
    const before = writes();
    log.add('run-next', 'RunRequested', request());
    log.add('run-next', 'RunStarted', { worker: 'w', attempt: 1, leased_until });
    log.add('run-next', 'RunSucceeded', success());
    for (const event of log.events.slice(-3)) {
      await store.append(event.stream, [event], 'any');
    }
    await clock.advance(25);
    await harness.reached(runsProjection, await harness.store.head());
    expect(writes() - before).to.equal(1);
  });

  it('gathers longer once it has fallen behind, because repeated writes delay it', async () => {
    const { log, store } = harness;
    const { clock, writes } = await underLoad(250);
    const before = writes();
    const oneMore = async (): Promise<void> => {
      const next = log.add('run-next', 'RunStarted', { worker: 'w', attempt: 1, leased_until });
      await store.append(next.stream, [next], 'any');
    };
    // The events are an hour old.
    await store.append('run-next', [log.add('run-next', 'RunRequested', request())], 'any');
    for (let waited = 0; waited < 99; waited += 9) {
      await clock.advance(9);
      await oneMore();
    }
    expect(writes() - before).to.equal(0);
    await clock.advance(1);
    await harness.reached(runsProjection, await store.head());
    expect(writes() - before).to.equal(1);
  });

  it('stops gathering when no more events come', async () => {
    const { log, store } = harness;
    const { clock, writes } = await underLoad(125);
    const before = writes();
    await store.append('run-next', [log.add('run-next', 'RunRequested', request())], 'any');
    await clock.advance(10);
    await harness.reached(runsProjection, await store.head());
    expect(writes() - before).to.equal(1);
  });
});
