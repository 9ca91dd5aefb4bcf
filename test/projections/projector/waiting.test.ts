import { expect } from 'chai';
import { agentsProjection } from '../../../projections/views/agents.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import { eventually } from '../../support/signals.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { notAnswering, withWrites } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request } from '../recorded.ts';

describe('a view whose store does not respond', () => {
  let harness: ProjectorHarness;

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
  });
  afterEach(() => harness.close());

  const addRun = (id: string): unknown => harness.log.add(`run-${id}`, 'RunRequested', request());

  it('waits, says so, and recovers by itself', async () => {
    let isDown = false;
    const readModel = withWrites(harness.readModel, (name, _batch, go) =>
      isDown && name === 'runs' ? Promise.reject(notAnswering()) : go(),
    );
    const projector = harness.start([runsProjection, statisticsProjection], { readModel });
    addRun('1');
    await harness.reached(runsProjection, await harness.append());
    isDown = true;
    addRun('2');
    const head = await harness.append();
    await harness.reached(statisticsProjection, head);
    await eventually(() => {
      const [runs, statistics] = projector.status();
      expect(runs).to.deep.include({ state: 'waiting', caught_up: false });
      expect(runs?.detail).to.equal('the read model does not respond');
      expect(runs?.lag_seconds).to.be.greaterThan(0);
      expect(statistics).to.deep.include({ state: 'following', caught_up: true });
    });
    isDown = false;
    await harness.reached(runsProjection, head);
    expect(await harness.readModel.get(runsProjection, '2')).to.not.equal(null);
  });

  it('is retried less and less often, even if only its checkpoint cannot be written', async () => {
    const clock = new VirtualClock();
    const triedAt: number[] = [];
    let answers = true;
    const readModel = withWrites(harness.readModel, async (_name, _batch, go) => {
      if (answers) return go();
      triedAt.push(clock.now());
      throw notAnswering();
    });
    harness.start([agentsProjection], { clock, readModel });
    addRun('1');
    const head = await harness.append();
    await eventually(async () => {
      await clock.advance(25);
      return (await harness.readModel.checkpoint(agentsProjection)) === head;
    });
    answers = false;
    addRun('2');
    await harness.append();
    await eventually(async () => {
      await clock.advance(25);
      return triedAt.length >= 6;
    });
    const gaps = triedAt.slice(1).map((at, i) => at - (triedAt[i] ?? 0));
    const least = [50, 100, 200, 400, 800];
    expect(
      gaps.every((gap, i) => gap >= (least[i] ?? 0)),
      gaps.join(', '),
    ).to.equal(true);
  });

  it('is rebuilt after a reader discarded its damaged file, also on an idle log', async () => {
    const clock = new VirtualClock();
    addRun('1');
    const head = await harness.append();
    const projector = harness.start([runsProjection], { clock });
    await eventually(async () => {
      await clock.advance(25);
      expect(projector.status()[0]).to.deep.include({ version: 1, caught_up: true });
      expect(await harness.readModel.checkpoint(runsProjection)).to.equal(head);
    });
    // A reader does this if it finds the file damaged.
    await harness.readModel.withdraw(runsProjection);
    await eventually(async () => {
      await clock.advance(1_000);
      expect(await harness.readModel.liveGeneration(runsProjection)).to.equal(2);
    });
    expect(await harness.readModel.get(runsProjection, '1')).to.not.equal(null);
  });
});
