import { expect } from 'chai';
import { BEGINNING, type Landmark } from '../../domain/event-store.ts';
import { ReadModelError, type Projection, type ReadModel } from '../../projections/read-model.ts';
import { eventually } from '../support/signals.ts';
import {
  at,
  contents,
  fill,
  keysOf,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type ReadModelHarness,
  type Thing,
} from './read-model-things.ts';

/** The contract of generations. Part of `describeReadModelContract`. */
export function describeGenerations(harness: () => ReadModelHarness): void {
  describe('a view without a live generation', () => {
    it('cannot be read, and has no checkpoint', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await rejectsWith('NO_VIEW', readModel.get(projection, 'a'));
      await rejectsWith('NO_VIEW', readModel.count(projection, []));
      await rejectsWith('NO_VIEW', readModel.find(projection, { filters: [], sort: [], limit: 1 }));
      expect(await readModel.liveGeneration(projection)).to.equal(null);
      expect(await readModel.checkpoint(projection)).to.equal(BEGINNING);
      expect(await readModel.generations(projection)).to.deep.equal([]);
    });

    it('stays that way while its first generation is filled', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection, { bulk: true });
      await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
      expect(await readModel.generations(projection)).to.deep.equal([1]);
      expect(await readModel.schemas(projection)).to.deep.equal([projection.schema]);
      expect(await readModel.liveGeneration(projection)).to.equal(null);
      await rejectsWith('NO_VIEW', readModel.get(projection, 'a'));
      await writer.finish();
      await writer.close();
    });
  });

  describe('the landmark of a view', () => {
    const landmark = (revision: number): Landmark => {
      return { stream: 'thing-1', revision, id: `event-${revision}`, createdAt: at(revision) };
    };

    it('belongs to the live generation, and does not change with a batch that has none', async () => {
      const { readModel, another } = harness();
      const projection = thingsProjection();
      expect(await readModel.landmark(projection)).to.equal(null);
      const writer = await writerOf(readModel, projection, { bulk: true });
      const [one, two] = [landmark(1), landmark(2)];
      const documents = [thing('a', 1, {})];
      await writer.write({ documents, from: BEGINNING, to: at(1), landmark: one });
      expect(await readModel.landmark(projection)).to.equal(null);
      await writer.finish();
      await readModel.switchTo(projection, 1);
      await eventually(async () => (await readModel.landmark(projection)) !== null);
      expect(await readModel.landmark(projection)).to.deep.equal(one);
      await writer.write({ documents: [], from: at(1), to: at(2), landmark: two });
      await writer.write({ documents: [thing('a', 3, {})], from: at(2), to: at(3) });
      expect(await (await another()).landmark(projection)).to.deep.equal(two);
      await writer.write({ documents: [], from: at(3), to: at(4), landmark: one });
      expect(await readModel.landmark(projection)).to.deep.equal(one);
      await writer.close();
      await fill(readModel, projection, [thing('a', 1, {})], 2);
      await eventually(async () => (await readModel.landmark(projection)) === null);
    });

    it('is discarded with its generation', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection);
      await writer.write({ documents: [], from: BEGINNING, to: at(1), landmark: landmark(1) });
      await writer.close();
      await readModel.discard(projection, 1);
      await fill(readModel, projection, [thing('a', 1, {})]);
      expect(await readModel.landmark(projection)).to.equal(null);
    });
  });

  describe('the schemas of a view', () => {
    it('are those with a generation, under this name only', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      expect(await readModel.schemas(projection)).to.deep.equal([]);
      for (const schema of [12, 3]) await fill(readModel, { ...projection, schema }, []);
      await fill(readModel, { ...projection, name: `${projection.name}_more`, schema: 7 }, []);
      expect(await readModel.schemas(projection)).to.deep.equal([3, 12]);
      await readModel.withdraw({ ...projection, schema: 3 });
      await readModel.discard({ ...projection, schema: 3 }, 1);
      expect(await readModel.schemas(projection)).to.deep.equal([12]);
    });
  });

  describe('a generation', () => {
    it('is filled in bulk beside the live one, finished, and made live', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, { name: 'live' })]);
      const writer = await fillInBulk(readModel, projection, 2, 3_000);
      expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ name: 'live' });
      expect(await readModel.count(projection, [])).to.equal(1);
      const finishing = writer.finish();
      expect(await keysOf(readModel, projection, {})).to.deep.equal(['a']);
      await finishing;
      expect(await readModel.generations(projection)).to.deep.equal([1, 2]);
      expect(await readModel.checkpoint(projection)).to.equal(at(1));

      await readModel.switchTo(projection, 2);
      expect(await readModel.liveGeneration(projection)).to.equal(2);
      expect(await readModel.checkpoint(projection)).to.equal(at(3_000));
      expect(await readModel.get(projection, 'a')).to.equal(null);
      expect(await readModel.count(projection, [])).to.equal(3_000);
      const found = await keysOf(readModel, projection, {
        filters: [
          { field: 'team', op: 'eq', value: 'even' },
          { field: 'tags', op: 'has', value: 'tag7' },
        ],
        sort: [{ field: 'amount', direction: 'descending' }],
        limit: 2,
      });
      expect(found).to.deep.equal([]);
      const odd = await keysOf(readModel, projection, {
        filters: [
          { field: 'team', op: 'eq', value: 'odd' },
          { field: 'tags', op: 'has', value: 'tag7' },
        ],
        sort: [{ field: 'amount', direction: 'descending' }],
        limit: 2,
      });
      expect(odd).to.deep.equal(['k2997', 'k2987']);
      await writer.write({
        documents: [thing('k2997', 3_001, { team: 'none' })],
        from: at(3_000),
        to: at(3_001),
      });
      await writer.close();
      expect(await keysOf(readModel, projection, { filters: [teamIs('none')] })).to.deep.equal([
        'k2997',
      ]);
    });

    it('shows its writer its documents by key, page by page', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const writer = await fillInBulk(readModel, projection, 1, 500);
      await writer.finish();
      await writer.write({ documents: [thing('k7', 501, null)], from: at(500), to: at(501) });
      expect(await writer.count()).to.equal(499);
      const keys: string[] = [];
      for (let after: string | null = null; ; after = keys.at(-1) ?? null) {
        const page = await writer.page(after, 200);
        if (page.length === 0) break;
        keys.push(...page.map(({ key }) => key));
      }
      const all = Array.from({ length: 500 }, (_, n) => `k${String(n)}`).filter((k) => k !== 'k7');
      expect(keys).to.deep.equal(all.sort());
      const [first] = await writer.page(null, 1);
      expect(first?.document).to.deep.equal((await writer.load(['k0'])).get('k0')?.document);
      await writer.close();
    });

    it('guards its documents and its checkpoint during a bulk fill too', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection, { bulk: true, fence: 4 });
      await writer.write({
        documents: [thing('a', 2, { name: 'kept' }), thing('b', 2, { tags: ['x'] })],
        from: BEGINNING,
        to: at(2),
      });
      await rejectsWith('FENCED', writer.write({ documents: [], from: BEGINNING, to: at(3) }));
      expect((await writer.load(['a', 'b', 'c'])).size).to.equal(2);
      await writer.write({
        documents: [thing('a', 1, { name: 'earlier' }), thing('b', 3, null)],
        from: at(2),
        to: at(3),
      });
      await writer.finish();
      await writer.close();
      await readModel.switchTo(projection, 1);
      expect([...(await contents(readModel, projection)).values()]).to.deep.equal([
        thing('a', 2, { name: 'kept' }),
      ]);
    });

    it('resumes an interrupted fill from its checkpoint, or starts over', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const stopped = await fillInBulk(readModel, projection, 1, 1_000);
      await stopped.close();
      const writer = await writerOf(await harness().another(), projection, { bulk: true });
      const from = await writer.checkpoint();
      expect([BEGINNING, at(1_000)]).to.include(from);
      const kept = await writer.load(['k0', 'k999']);
      expect(kept.size).to.equal(from === BEGINNING ? 0 : 2);
      await writer.write({ documents: [thing('z', 1_001, {})], from, to: at(1_001) });
      await writer.finish();
      await writer.close();
      await readModel.switchTo(projection, 1);
      expect(await readModel.count(projection, [])).to.equal(from === BEGINNING ? 1 : 1_001);
    });

    it('has nothing to finish without a bulk fill', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, { team: 'red' })]);
      const writer = await writerOf(readModel, projection);
      await writer.finish();
      await writer.close();
      expect(await keysOf(readModel, projection, { filters: [teamIs('red')] })).to.deep.equal([
        'a',
      ]);
    });

    it('is still updated after another went live, and can be made live again', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, { name: 'first' })], 1);
      await fill(readModel, projection, [thing('a', 1, { name: 'second' })], 2);
      const before = await writerOf(readModel, projection, { generation: 1 });
      await before.write({ documents: [thing('b', 2, {})], from: at(1), to: at(2) });
      await before.close();
      expect(await keysOf(readModel, projection, {})).to.deep.equal(['a']);
      await readModel.switchTo(projection, 1);
      expect(await keysOf(readModel, projection, {})).to.deep.equal(['a', 'b']);
      expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ name: 'first' });
    });

    it('can be discarded when it is not live', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, { name: 'first' })], 1);
      await fill(readModel, projection, [thing('b', 1, { name: 'second' })], 10);
      expect(await readModel.generations(projection)).to.deep.equal([1, 10]);
      const live = await readModel.discard(projection, 10).then(
        () => 'thrown away',
        () => 'refused',
      );
      expect(live).to.equal('refused');
      await readModel.discard(projection, 1);
      expect(await readModel.generations(projection)).to.deep.equal([10]);
      expect(await keysOf(readModel, projection, {})).to.deep.equal(['b']);
      await readModel.discard(projection, 1);
      const anew = await writerOf(readModel, projection, { generation: 1 });
      expect(await anew.checkpoint()).to.equal(BEGINNING);
      expect((await anew.load(['a'])).size).to.equal(0);
      await anew.close();
    });

    it('is no longer read in any process once withdrawn, and can be discarded', async () => {
      const { readModel } = harness();
      const other = await harness().another();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, {})], 3);
      expect(await keysOf(other, projection, {})).to.deep.equal(['a']);
      await readModel.withdraw(projection);
      await rejectsWith('NO_VIEW', readModel.get(projection, 'a'));
      expect(await other.liveGeneration(projection)).to.equal(null);
      await readModel.discard(projection, 3);
      const isGone = (): Promise<boolean> =>
        other.count(projection, []).then(
          () => false,
          (error: unknown) => error instanceof ReadModelError && error.code === 'NO_VIEW',
        );
      await eventually(isGone, {
        limitMs: 5_000,
        what: 'the view to be withdrawn in the other process',
      });
      expect(await readModel.generations(projection)).to.deep.equal([]);
      await readModel.withdraw(projection);
      await fill(readModel, projection, [thing('b', 1, {})], 3);
      expect(await keysOf(readModel, projection, {})).to.deep.equal(['b']);
    });

    it('is no longer written once discarded under its writer', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, {})], 2);
      const writer = await writerOf(readModel, projection, { generation: 1 });
      await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
      await (await harness().another()).discard(projection, 1);
      await rejectsWith('FENCED', writer.write({ documents: [], from: at(1), to: at(2) }));
      await writer.close();
      expect(await readModel.generations(projection)).to.deep.equal([2]);
    });

    it('is live only for its schema', async () => {
      const { readModel } = harness();
      const older = thingsProjection(1);
      const newer: Projection<Thing> = { ...older, schema: 2 };
      await fill(readModel, older, [thing('a', 1, { name: 'old release' })], 1);
      await rejectsWith('NO_VIEW', readModel.get(newer, 'a'));
      expect(await readModel.generations(newer)).to.deep.equal([]);
      await fill(readModel, newer, [thing('a', 1, { name: 'new release' })], 1);
      expect((await readModel.get(older, 'a'))?.document.name).to.equal('old release');
      expect((await readModel.get(newer, 'a'))?.document.name).to.equal('new release');
    });

    it('is soon read by another process after going live', async () => {
      const { readModel } = harness();
      const other = await harness().another();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, { name: 'first' })], 1);
      const sees = (name: string) =>
        eventually(async () => (await other.get(projection, 'a'))?.document.name === name, {
          limitMs: 5_000,
          what: `the ${name} generation to be read by the other process`,
        });
      await sees('first');
      const second = await writerOf(readModel, projection, { generation: 2 });
      await second.write({
        documents: [thing('a', 2, { name: 'second' })],
        from: BEGINNING,
        to: at(2),
      });
      await second.close();
      expect((await other.get(projection, 'a'))?.document.name).to.equal('first');
      await readModel.switchTo(projection, 2);
      await sees('second');
      expect(await other.liveGeneration(projection)).to.equal(2);
      expect(await other.checkpoint(projection)).to.equal(at(2));
      expect(await keysOf(other, projection, {})).to.deep.equal(['a']);
      await readModel.discard(projection, 1);
      expect(await other.count(projection, [])).to.equal(1);
    });

    it('shows writes of another process at once', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, { amount: 0 })]);
      const writer = await writerOf(await harness().another(), projection);
      for (let i = 2; i < 30; i += 1) {
        await writer.write({
          documents: [thing('a', i, { amount: i })],
          from: at(i - 1),
          to: at(i),
        });
        expect(await readModel.checkpoint(projection)).to.equal(at(i));
        expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ amount: i });
        const filters = [{ field: 'amount', op: 'eq', value: i }] as const;
        expect(await readModel.count(projection, filters)).to.equal(1);
      }
      await writer.close();
    });
  });
}

function teamIs(value: string) {
  return { field: 'team', op: 'eq', value } as const;
}

/** Fills a generation in batches of 500: documents `k0`, `k1`, … at positions 1, 2, … */
async function fillInBulk(
  readModel: ReadModel,
  projection: Projection,
  generation: number,
  count: number,
) {
  const writer = await writerOf(readModel, projection, { generation, bulk: true });
  for (let done = 0; done < count; done += 500) {
    const documents = Array.from({ length: 500 }, (_, i) => {
      const n = done + i;
      return thing(`k${String(n)}`, n + 1, {
        name: `name ${String(n)}`,
        team: n % 2 === 0 ? 'even' : 'odd',
        amount: n,
        tags: [`tag${String(n % 10)}`],
      });
    });
    await writer.write({
      documents,
      from: done === 0 ? BEGINNING : at(done),
      to: at(done + 500),
    });
  }
  return writer;
}
