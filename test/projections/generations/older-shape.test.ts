import { expect } from 'chai';
import { readingOlderShapes, shapeRead } from '../../../projections/generations/older-shape.ts';
import { ReadModelError, type Filter, type Projection } from '../../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { eventually } from '../../support/signals.ts';
import { withFillingAfter } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request, success } from '../recorded.ts';

describe('an older shape of a view', () => {
  let harness: ProjectorHarness;
  beforeEach(async () => {
    harness = await ProjectorHarness.open();
  });
  afterEach(() => harness.close());

  function addRun(id: string): void {
    harness.log.add(`run-${id}`, 'RunRequested', request());
    harness.log.add(`run-${id}`, 'RunSucceeded', success());
  }

  it('is read and fed until the present shape is built, if the code can read it', async () => {
    addRun('0');
    addRun('1');
    const head = await harness.append();
    harness.start([runsProjection]);
    await harness.reached(runsProjection, head);
    await harness.stop();
    const { schema, evolve } = runsProjection;
    const reshaped: Projection = {
      ...(runsProjection as Projection),
      schema: schema + 1,
      readsOlder: [schema],
      evolve(document, event, key) {
        const folded = evolve(document as RunDocument | null, event, key);
        return folded === null ? null : { ...folded, reshaped: true };
      },
    };
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const readModel = withFillingAfter(harness.readModel, gate);
    const reads = readingOlderShapes(harness.readModel);
    const projector = harness.start([reshaped], { readModel });
    expect(await reads.count(reshaped, [])).to.equal(2);
    addRun('more');
    const later = await harness.append();
    await eventually(async () => (await reads.checkpoint(reshaped)) === later);
    expect(await reads.count(reshaped, [])).to.equal(3);
    expect(await harness.readModel.liveGeneration(reshaped)).to.equal(null);
    expect(projector.status()[0]).to.deep.include({ state: 'filling', position: later });
    expect((await shapeRead(harness.readModel, reshaped))?.schema).to.equal(schema);

    open();
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ state: 'following', version: 1 });
    });
    addRun('last');
    const last = await harness.append();
    await harness.reached(reshaped, last);
    expect(await reads.checkpoint(reshaped)).to.equal(last);
    const found = await reads.find(reshaped, { filters: [], sort: [], limit: 10 });
    expect(found.map(({ document }) => document['reshaped'])).to.deep.equal([
      true,
      true,
      true,
      true,
    ]);
    expect(await harness.readModel.checkpoint(runsProjection)).to.equal(later);
  });

  it('is read and updated without a queried field that it lacks, which counts as null everywhere', async () => {
    const { parent_run_id: _parent, ...fields } = runsProjection.fields;
    const older: Projection = {
      ...(runsProjection as Projection),
      fields,
      indexes: runsProjection.indexes.filter((index) => !index.includes('parent_run_id')),
      covered: runsProjection.covered?.slice(1) ?? [],
    };
    addRun('0');
    const head = await harness.append();
    harness.start([older]);
    await harness.reached(older, head);
    await harness.stop();
    const { schema } = older;
    const added = { readsOlder: [schema], addedFields: { parent_run_id: schema + 1 } };
    const newer = { ...(runsProjection as Projection), ...added, schema: schema + 1 };
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const readModel = withFillingAfter(harness.readModel, gate);
    const projector = harness.start([newer], { readModel });
    const reads = readingOlderShapes(harness.readModel);
    addRun('1');
    const later = await harness.append();
    await eventually(async () => (await reads.checkpoint(newer)) === later);
    const task: Filter = { field: 'task_id', op: 'eq', value: 'task-1' };
    expect(await reads.count(newer, [task])).to.equal(2);
    const parent: Filter = { field: 'parent_run_id', op: 'eq', value: '0' };
    const query = { filters: [parent], sort: [], limit: 1 };
    for (const asked of [
      reads.count(newer, [parent]),
      reads.find(newer, query),
      reads.list(newer, query),
    ]) {
      expect(await codeOf(asked)).to.equal('NO_VIEW');
    }
    const none: Filter = { field: 'parent_run_id', op: 'eq', value: null };
    expect(await reads.count(newer, [task, none])).to.equal(2);
    const listed = await reads.list(newer, { filters: [none], sort: [], limit: 5 });
    expect(listed.total).to.equal(2);
    const asked = { filters: [task, none], fields: ['parent_run_id', 'state'] };
    const values = await reads.values(newer, asked);
    expect(values.map((each) => each.values)).to.deep.equal(Array(2).fill([null, 'succeeded']));
    open();
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ state: 'following', version: 1 });
    });
    expect(await reads.count(newer, [parent])).to.equal(0);
  });
});

async function codeOf(asked: Promise<unknown>): Promise<unknown> {
  try {
    return await asked;
  } catch (error) {
    return error instanceof ReadModelError ? error.code : error;
  }
}
