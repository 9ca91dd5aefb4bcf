import { expect } from 'chai';
import { decorate } from '../../../domain/decorate.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import {
  cancelRebuildCommand,
  rollbackCommand,
} from '../../../domain/operators/projection-commands.ts';
import type { Projector } from '../../../projections/projector/projector.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { Signal, deferred, eventually } from '../../support/signals.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request } from '../recorded.ts';

const runs = runsProjection as unknown as Projection;
const RUNS = 5;

describe('an interrupted switch', () => {
  let harness: ProjectorHarness;
  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    for (let n = 0; n < RUNS; n += 1) harness.log.add(`run-r${n}`, 'RunRequested', request());
  });
  afterEach(() => harness.close());

  /** Starts a projector and waits until the view can be read. */
  async function started(
    parts: { readonly readModel?: ReadModel; readonly store?: EventStore } = {},
  ): Promise<Projector> {
    const head = await harness.append();
    const projector = harness.start([runs], parts);
    await harness.reached(runs, head);
    return projector;
  }

  const reads = (version: number): Promise<void> =>
    eventually(async () => {
      expect(await harness.readModel.liveGeneration(runs)).to.equal(version);
    });

  it('does not move reads if another projector has moved them since', async () => {
    const goesOn = deferred();
    const stopped = new Signal<number>('switches that are stopped');
    const done = new Signal<number>('switches that are done');
    const stopping = decorate(harness.readModel, {
      async switchTo(projection, generation) {
        if (generation === 2) {
          stopped.send(generation);
          await goesOn.promise;
        }
        await harness.readModel.switchTo(projection, generation);
        done.send(generation);
      },
    });
    await started({ readModel: stopping });
    await harness.rebuild(runs);
    await stopped.wait();
    // Its lease has expired. The next projector completes the switch, and then later orders.
    harness.start([runs]);
    await reads(2);
    await rollbackCommand(harness.order(runs));
    await reads(1);
    goesOn.resolve();
    await done.wait((generation) => generation === 2);
    await reads(1);
    await harness.stop();
    expect(await harness.readModel.liveGeneration(runs)).to.equal(1);
  });

  it('leaves nothing of a generation that is canceled at the last instant', async () => {
    const goesOn = deferred();
    const switching = new Signal<void>('switches that are about to be recorded');
    const store = decorate(harness.store, {
      async append(stream, events, expected) {
        if (events.some(({ type }) => type === 'ProjectionSwitched')) {
          switching.send();
          await goesOn.promise;
        }
        return harness.store.append(stream, events, expected);
      },
    });
    const projector = await started({ store });
    await harness.rebuild(runs);
    await switching.wait();
    await cancelRebuildCommand(harness.order(runs));
    goesOn.resolve();
    await eventually(async () => {
      const [status] = projector.status();
      expect(status).to.deep.include({ version: 1, state: 'following', rebuild: null });
      expect(await harness.readModel.generations(runs)).to.deep.equal([1]);
    });
    expect(await harness.readModel.count(runs, [])).to.equal(RUNS);
  });
});
