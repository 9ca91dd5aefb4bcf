import { expect } from 'chai';
import { SystemClock } from '../../../app/clock.ts';
import type { Instant } from '../../../domain/clock.ts';
import { silent } from '../../../observability/telemetry.ts';
import {
  OLDER_SHAPES_KEPT_MS,
  OlderShapesCleanup,
} from '../../../projections/generations/older-shapes-cleanup.ts';
import type { Projection } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { eventually } from '../../support/signals.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request } from '../recorded.ts';

const runs = runsProjection as unknown as Projection;
const older: Projection = { ...runs, schema: 1 };
const newer: Projection = { ...runs, schema: runs.schema + 1 };

/** A clock that is ahead by a number of milliseconds. */
class ClockAhead extends SystemClock {
  ahead = 0;
  override now(): Instant {
    return super.now() + this.ahead;
  }
}

describe('a view in the shape of an older release', () => {
  let harness: ProjectorHarness;
  let clock: ClockAhead;
  let cleanup: OlderShapesCleanup;
  const memory = new Map<string, string>();
  let runsThere = 0;

  const addRun = (): Promise<string> => {
    runsThere += 1;
    harness.log.add(`run-r${runsThere}`, 'RunRequested', request());
    return harness.append();
  };
  /** Runs a release's projector, with views of some shapes, up to the end of the log. */
  const project = async (...shapes: readonly Projection[]): Promise<void> => {
    const head = await harness.store.head();
    for (const shape of shapes) {
      harness.start([shape]);
      await eventually(async () => {
        expect(await harness.readModel.liveGeneration(shape)).to.not.equal(null);
        expect((await harness.readModel.checkpoint(shape)) >= head).to.equal(true);
      });
      await harness.stop();
    }
  };
  const schemas = (): Promise<readonly number[]> => harness.readModel.schemas(runs);

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    clock = new ClockAhead();
    memory.clear();
    runsThere = 0;
    const { store, readModel } = harness;
    cleanup = new OlderShapesCleanup({
      store,
      readModel,
      projections: [runs],
      clock,
      telemetry: silent,
      memory: {
        recall: async (name) => memory.get(name) ?? null,
        remember: async (name, value) => {
          memory.set(name, value);
          return true;
        },
      },
    });
    await addRun();
  });
  afterEach(() => harness.close());

  it('is discarded, with a record, once no release has fed it for a week', async () => {
    await project(older, newer, runs);
    await cleanup.check();
    clock.ahead = OLDER_SHAPES_KEPT_MS - 60_000;
    await cleanup.check();
    expect(await schemas()).to.deep.equal([1, runs.schema, newer.schema]);
    clock.ahead = OLDER_SHAPES_KEPT_MS + 60_000;
    await cleanup.check();
    expect(await schemas()).to.deep.equal([runs.schema, newer.schema]);
    expect(await harness.readModel.liveGeneration(older)).to.equal(null);
    expect(await harness.readModel.count(runs, [])).to.equal(runsThere);
    const recorded = await harness.store.readStream('projection-runs');
    expect(recorded.map(({ type, data }) => ({ type, data }))).to.deep.equal([
      { type: 'ProjectionShapeDiscarded', data: { schema: 1, version: 1 } },
    ]);
    await cleanup.check();
    expect(await harness.store.readStream('projection-runs')).to.have.lengthOf(1);
  });

  it('stays while a release of that shape feeds it', async () => {
    await project(older, runs);
    await cleanup.check();
    clock.ahead = OLDER_SHAPES_KEPT_MS + 60_000;
    await addRun();
    await project(older);
    await cleanup.check();
    expect(await schemas()).to.deep.equal([1, runs.schema]);
    clock.ahead += OLDER_SHAPES_KEPT_MS;
    await cleanup.check();
    expect(await schemas()).to.deep.equal([runs.schema]);
  });

  it('stays until the present shape is built, and is rebuilt by a release that comes back', async () => {
    await project(older);
    await cleanup.check();
    clock.ahead = OLDER_SHAPES_KEPT_MS + 60_000;
    await cleanup.check();
    expect(await schemas()).to.deep.equal([1]);
    await project(runs);
    // The week starts now.
    await cleanup.check();
    clock.ahead += OLDER_SHAPES_KEPT_MS;
    await cleanup.check();
    expect(await schemas()).to.deep.equal([runs.schema]);
    await project(older);
    await cleanup.check();
    expect(await schemas()).to.deep.equal([1, runs.schema]);
    expect(await harness.readModel.count(older, [])).to.equal(runsThere);
  });

  it('is discarded even if the projector crashed after recording it', async () => {
    await project(older, runs);
    await cleanup.check();
    clock.ahead = OLDER_SHAPES_KEPT_MS + 60_000;
    const { readModel } = harness;
    const discard = readModel.discard.bind(readModel);
    readModel.discard = () => Promise.reject(new Error('killed'));
    expect(await cleanup.check().catch((error: unknown) => error)).to.be.instanceOf(Error);
    readModel.discard = discard;
    await cleanup.check();
    expect(await schemas()).to.deep.equal([runs.schema]);
  });
});
