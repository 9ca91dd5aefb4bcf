import { expect } from 'chai';
import { decorate } from '../../../domain/decorate.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { parkedKeyCommand } from '../../../domain/operators/projection-commands.ts';
import type { Projector } from '../../../projections/projector/projector.ts';
import type { Projection } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { eventually } from '../../support/signals.ts';
import { notAnswering } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request, success } from '../recorded.ts';

const runs = runsProjection as unknown as Projection;

/** The runs view, with a start that cannot be folded. */
const touchy: Projection = {
  ...runs,
  evolve(document, event, key) {
    if (event.type === 'RunStarted') throw new Error('poison');
    return runs.evolve(document, event, key);
  },
};

describe('a skip whose projector crashes before it is reported as done', () => {
  let harness: ProjectorHarness;
  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    const leased_until = '2026-03-01T09:00:30.000Z';
    harness.log.add('run-r1', 'RunRequested', request());
    harness.log.add('run-r1', 'RunStarted', { worker: 'w', attempt: 1, leased_until });
    harness.log.add('run-r1', 'RunStarted', { worker: 'w', attempt: 2, leased_until });
    harness.log.add('run-r1', 'RunSucceeded', success());
    await harness.append();
  });
  afterEach(() => harness.close());

  async function parks(projector: Projector, parked: number): Promise<void> {
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ parked });
    });
  }

  async function skip(): Promise<void> {
    await parkedKeyCommand(harness.order(runs), { version: 1, key: 'r1', order: 'skip' });
  }

  async function said(): Promise<readonly string[]> {
    return (await harness.store.readStream('projection-runs')).map(({ type }) => type);
  }

  it('leaves out the ordered event, and none after it', async () => {
    await parks(harness.start([touchy]), 1);
    await harness.stop();
    await skip();
    let isDead = false;
    const mortal: EventStore = decorate(harness.store, {
      async append(stream, events, expected) {
        isDead ||= events.some(({ type }) => type === 'ParkedKeySettled');
        if (isDead) throw notAnswering();
        return harness.store.append(stream, events, expected);
      },
    });
    harness.start([touchy], { store: mortal });
    await eventually(() => {
      expect(isDead).to.equal(true);
    });
    await harness.stop();

    const projector = harness.start([touchy]);
    await eventually(async () => {
      expect((await said()).at(-1)).to.equal('ParkedKeySettled');
    });
    await parks(projector, 1);
    const [first, ...more] = (await harness.store.readStream('projection-runs')).flatMap((event) =>
      event.type === 'ParkedEventSkipped' ? [event.data.revision] : [],
    );
    expect({ first, more }).to.deep.equal({ first: 1, more: [] });
    const settled = (await harness.store.readStream('projection-runs')).at(-1);
    expect(settled?.data).to.deep.include({ key: 'r1', error: 'poison' });

    await skip();
    await parks(projector, 0);
    const found = await harness.readModel.get(runs, 'r1');
    expect(found?.document).to.deep.include({ state: 'succeeded' });
  });
});
