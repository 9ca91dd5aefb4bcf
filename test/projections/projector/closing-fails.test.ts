import { expect } from 'chai';
import { parkedKeyCommand, switchCommand } from '../../../domain/operators/projection-commands.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { parkedProjection } from '../../../projections/projector/parking.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { eventually } from '../../support/signals.ts';
import { notAnswering, withCloses } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request, success } from '../recorded.ts';

const runs = runsProjection as unknown as Projection;

describe('a view whose writer fails to close', () => {
  let harness: ProjectorHarness;
  beforeEach(async () => {
    harness = await ProjectorHarness.open();
  });
  afterEach(() => harness.close());

  function addRun(id: string): Promise<string> {
    harness.log.add(`run-${id}`, 'RunRequested', request());
    harness.log.add(`run-${id}`, 'RunSucceeded', success());
    return harness.append();
  }

  /** Makes the next close of a view's writer fail, once it is armed. */
  function failingOnce(name: string): { readonly readModel: ReadModel; arm(): void } {
    let armed = false;
    const readModel = withCloses(harness.readModel, async (closed, go) => {
      await go();
      if (closed !== name || !armed) return;
      armed = false;
      throw notAnswering();
    });
    return { readModel, arm: () => (armed = true) };
  }

  it('is replaced by the next generation nevertheless', async () => {
    const { readModel, arm } = failingOnce('runs');
    const head = await addRun('r0');
    const projector = harness.start([runs], { readModel });
    await harness.reached(runs, head);
    await harness.rebuild(runs, { switch: 'manual' });
    await eventually(() => {
      expect(projector.status()[0]?.rebuild).to.include({ state: 'ready' });
    });
    arm();
    await switchCommand(harness.order(runs));
    await eventually(() => {
      expect(projector.status()[0]).to.include({ version: 2, rebuild: null, state: 'following' });
    });
    await addRun('r1');
    await eventually(async () => {
      expect(await harness.readModel.count(runs, [])).to.equal(2);
    });
  });

  it('is still fed after one of its keys was folded again', async () => {
    let broken = true;
    const fragile: Projection = {
      ...runs,
      evolve: (document, event, key) => {
        if (broken && event.type === 'RunSucceeded' && key === 'r0') throw new Error('broken');
        return runs.evolve(document, event, key);
      },
    };
    const { readModel, arm } = failingOnce('runs');
    const head = await addRun('r0');
    const projector = harness.start([fragile], { readModel });
    await harness.reached(fragile, head);
    await eventually(() => {
      expect(projector.status()[0]?.parked).to.equal(1);
    });
    broken = false;
    arm();
    await parkedKeyCommand(harness.order(runs), { key: 'r0', order: 'retry', version: 1 });
    await eventually(async () => {
      expect((await harness.readModel.get(runs, 'r0'))?.document.state).to.equal('succeeded');
      expect(await harness.readModel.count(parkedProjection, [])).to.equal(0);
    });
    await addRun('r1');
    await eventually(async () => {
      expect((await harness.readModel.get(runs, 'r1'))?.document.state).to.equal('succeeded');
    });
  });

  it('lets its projector stop gracefully', async () => {
    const { readModel, arm } = failingOnce('runs');
    const head = await addRun('r0');
    harness.start([runs], { readModel });
    await harness.reached(runs, head);
    arm();
    await harness.stop();
  });

  it('lets its projector stop gracefully if it holds the parked keys', async () => {
    const fragile: Projection = {
      ...runs,
      evolve: () => {
        throw new Error('broken');
      },
    };
    const { readModel, arm } = failingOnce('parked');
    const head = await addRun('r0');
    harness.start([fragile], { readModel });
    await harness.reached(fragile, head);
    arm();
    await harness.stop();
  });
});
