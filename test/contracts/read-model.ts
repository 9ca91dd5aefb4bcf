import { expect } from 'chai';
import { BEGINNING } from '../../domain/event-store.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { describeLists } from './read-model-lists.ts';
import { describeQueries } from './read-model-queries.ts';
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
import { describeGenerations } from './read-model-generations.ts';
import { describeInterruptedWriting } from './read-model-interrupted.ts';

export type { ReadModelHarness } from './read-model-things.ts';

/**
 * What every read model must do, whatever its engine. Each test opens its own harness and uses its own names of
 * projections, so that tests may share one server.
 *
 * @param name stands in the titles: "the embedded read model"
 * @param open called before each test
 * @param engine whether it writes a batch's documents before the checkpoint, and not both in one transaction: then the
 *   harness has `interruptBeforeCheckpoint`
 */
export function describeReadModelContract(
  name: string,
  open: () => Promise<ReadModelHarness>,
  engine: { readonly writesCheckpointLast?: boolean } = {},
): void {
  describe(name, () => {
    let current: ReadModelHarness | undefined;
    const harness = (): ReadModelHarness => {
      if (current === undefined) throw new Error('There is a harness only during a test');
      return current;
    };
    beforeEach(async () => {
      current = await open();
    });
    afterEach(async () => {
      await current?.close();
      current = undefined;
    });

    describeDocuments(() => harness().readModel);
    describeQueries(harness);
    describeLists(harness);
    describeWriting(harness);
    if (engine.writesCheckpointLast === true) describeInterruptedWriting(harness);
    describeGenerations(harness);

    it('responds to a ping, and rejects one once closed', async () => {
      const readModel = await harness().another();
      await readModel.ping();
      await readModel.close();
      await rejectsWith('UNAVAILABLE', readModel.ping());
      await readModel.close();
    });
  });
}

function describeDocuments(readModel: () => ReadModel): void {
  describe('a document', () => {
    it('is returned by its key, with its position', async () => {
      const projection = thingsProjection();
      await fill(readModel(), projection, [thing('a', 3, { name: 'one' })]);
      expect(await readModel().get(projection, 'a')).to.deep.equal({
        key: 'a',
        position: at(3),
        document: { name: 'one' },
      });
    });

    it('is null when the key does not exist', async () => {
      const projection = thingsProjection();
      await fill(readModel(), projection, [thing('a', 1, {})]);
      expect(await readModel().get(projection, 'A')).to.equal(null);
      expect(await readModel().get(projection, '')).to.equal(null);
    });

    it('keeps any JSON unchanged', async () => {
      const projection = thingsProjection();
      const about = {
        text: 'Zürich 日本 \u{1F600} "\'\\ \n\u0001 \u2028',
        nothing: null,
        empty: [{}, [], ''],
        numbers: [0, -1, 0.1, 1e300, 9_007_199_254_740_991, 4_294_967_296, 1.0],
        $set: { $gt: 1, 'a.b': true, '': 'empty' },
        deep: [[[[[{ a: [null, false] }]]]]],
        constructor: 'not a class',
        ...(JSON.parse('{"__proto__": {"a": 1}, "7": "\\u0000", "\\u0000": 7}') as object),
      };
      const document: Thing = { name: 'ü\u{1F680}', tags: ['ß', ''], about };
      await fill(readModel(), projection, [thing('ключ/\u{1F600} $.', 1, document)]);
      const kept = await readModel().get(projection, 'ключ/\u{1F600} $.');
      expect(kept?.document).to.deep.equal(document);
      const found = await readModel().find(projection, {
        filters: [{ field: 'tags', op: 'has', value: 'ß' }],
        sort: [],
        limit: 1,
      });
      expect(found.map((one) => one.document)).to.deep.equal([document]);
    });

    it('may be large', async () => {
      const projection = thingsProjection();
      const document: Thing = { name: 'long', about: 'x'.repeat(1_000_000) };
      await fill(readModel(), projection, [thing('a', 1, document)]);
      expect((await readModel().get(projection, 'a'))?.document).to.deep.equal(document);
    });

    it("may exceed the engine's own document limit", async () => {
      const projection = thingsProjection();
      const about = 'x'.repeat(17 * 1024 * 1024);
      await fill(readModel(), projection, [thing('a', 1, { about })]);
      expect((await readModel().get(projection, 'a'))?.document.about === about).to.equal(true);
    });

    it('is gone once deleted, and returns when written again', async () => {
      const projection = thingsProjection();
      await fill(readModel(), projection, [
        thing('a', 1, { name: 'first', tags: ['x'] }),
        thing('b', 2, { tags: ['x'] }),
      ]);
      await fill(readModel(), projection, [thing('a', 3, null)]);
      expect(await readModel().get(projection, 'a')).to.equal(null);
      expect(await keysOf(readModel(), projection, {})).to.deep.equal(['b']);
      const tagged = [{ field: 'tags', op: 'has', value: 'x' }] as const;
      expect(await readModel().count(projection, [])).to.equal(1);
      expect(await readModel().count(projection, tagged)).to.equal(1);
      await fill(readModel(), projection, [thing('a', 4, { name: 'second', tags: ['y'] })]);
      const kept = await readModel().get(projection, 'a');
      expect(kept).to.deep.include({ position: at(4), document: { name: 'second', tags: ['y'] } });
      expect(await readModel().count(projection, tagged)).to.equal(1);
    });

    it('is found only by its new values after a change', async () => {
      const projection = thingsProjection();
      await fill(readModel(), projection, [thing('a', 1, { team: 'red', tags: ['x', 'y'] })]);
      await fill(readModel(), projection, [thing('a', 2, { team: 'blue', tags: ['y', 'z'] })]);
      const by = (value: string) =>
        readModel().count(projection, [{ field: 'team', op: 'eq', value }]);
      const has = (value: string) =>
        readModel().count(projection, [{ field: 'tags', op: 'has', value }]);
      expect(await Promise.all([by('red'), by('blue')])).to.deep.equal([0, 1]);
      expect(await Promise.all([has('x'), has('y'), has('z')])).to.deep.equal([0, 1, 1]);
    });
  });
}

function describeWriting(harness: () => ReadModelHarness): void {
  describe('a writer', () => {
    it('begins at the beginning, and then continues where its last batch ended', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection);
      expect(await writer.checkpoint()).to.equal(BEGINNING);
      await writer.write({ documents: [thing('a', 2, {})], from: BEGINNING, to: at(5) });
      expect(await writer.checkpoint()).to.equal(at(5));
      await writer.write({ documents: [], from: at(5), to: at(9) });
      await writer.close();
      await readModel.switchTo(projection, 1);
      expect(await readModel.checkpoint(projection)).to.equal(at(9));
      const reopened = await writerOf(await harness().another(), projection);
      expect(await reopened.checkpoint()).to.equal(at(9));
      await reopened.close();
    });

    it('in any process changes only the version of its own view, if there are versions', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const beside = thingsProjection();
      await fill(readModel, projection, [thing('a', 1, {})]);
      await fill(readModel, beside, [thing('a', 1, {})]);
      if (readModel.version === undefined) return;
      const before = readModel.version(projection);
      const besideBefore = readModel.version(beside);
      expect(readModel.version(projection)).to.equal(before);
      await fill(await harness().another(), projection, [thing('a', 2, { name: 'changed' })]);
      const after = readModel.version(projection);
      expect(after).not.to.equal(before);
      expect(readModel.version(projection)).to.equal(after);
      expect(readModel.version(beside)).to.equal(besideBefore);
      await (await writerOf(readModel, projection, { generation: 2 })).close();
      await readModel.switchTo(projection, 2);
      expect(readModel.version(projection)).not.to.equal(after);
    });

    it('loads the documents that exist, with their positions', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection);
      await writer.write({
        documents: [thing('a', 1, { name: 'a' }), thing('b', 2, { name: 'b' })],
        from: BEGINNING,
        to: at(2),
      });
      await writer.write({ documents: [thing('b', 3, null)], from: at(2), to: at(3) });
      const loaded = await writer.load(['a', 'b', 'c']);
      expect(loaded.get('a')).to.deep.equal({ position: at(1), document: { name: 'a' } });
      expect(loaded.get('b')?.document ?? null).to.equal(null);
      expect(loaded.has('c')).to.equal(false);
      expect((await writer.load([])).size).to.equal(0);
      await writer.close();
    });

    it('accepts thousands of documents at once', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const documents = Array.from({ length: 5_000 }, (_, i) =>
        thing(`k${String(i)}`, i + 1, { name: `n${String(i)}`, amount: i, tags: ['all'] }),
      );
      await fill(readModel, projection, documents);
      const writer = await writerOf(readModel, projection);
      const loaded = await writer.load(documents.map(({ key }) => key));
      expect(loaded.size).to.equal(5_000);
      expect(loaded.get('k4999')).to.deep.equal({
        position: at(5_000),
        document: documents[4_999]?.document,
      });
      await writer.close();
      expect(await readModel.count(projection, [])).to.equal(5_000);
    });

    it('changes nothing by repeating a batch', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const first = {
        documents: [thing('a', 1, { amount: 1 }), thing('b', 2, { amount: 1 })],
        from: BEGINNING,
        to: at(2),
      };
      const second = {
        documents: [thing('a', 3, { amount: 2 }), thing('b', 4, null), thing('c', 5, {})],
        from: at(2),
        to: at(5),
      };
      const writer = await writerOf(readModel, projection);
      await writer.write(first);
      await writer.write(second);
      await readModel.switchTo(projection, 1);
      const before = await contents(readModel, projection);
      expect([...before.keys()]).to.deep.equal(['a', 'c']);
      await rejectsWith('FENCED', writer.write(second));
      await rejectsWith('FENCED', writer.write(first));
      expect(await writer.checkpoint()).to.equal(at(5));
      await writer.close();
      expect(await contents(readModel, projection)).to.deep.equal(before);
    });

    it('leaves a document alone that is stored at the same or a later position', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [
        thing('a', 5, { name: 'kept' }),
        thing('b', 5, { name: 'kept' }),
        thing('c', 5, { name: 'kept' }),
      ]);
      const writer = await writerOf(readModel, projection);
      await writer.write({
        documents: [
          thing('a', 5, { name: 'same position' }),
          thing('b', 4, { name: 'earlier' }),
          thing('c', 4, null),
          thing('d', 4, { name: 'new' }),
        ],
        from: at(5),
        to: at(6),
      });
      await writer.close();
      const names = [...(await contents(readModel, projection)).values()].map(
        ({ document }) => document?.name,
      );
      expect(names).to.deep.equal(['kept', 'kept', 'kept', 'new']);
      expect(await readModel.checkpoint(projection)).to.equal(at(6));
    });

    it('rejects a batch that does not begin at the checkpoint', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection);
      await writer.write({ documents: [], from: BEGINNING, to: at(5) });
      await rejectsWith('FENCED', writer.write({ documents: [], from: at(4), to: at(6) }));
      await rejectsWith('FENCED', writer.write({ documents: [], from: BEGINNING, to: at(6) }));
      await rejectsWith('FENCED', writer.write({ documents: [], from: at(6), to: at(7) }));
      expect(await writer.checkpoint()).to.equal(at(5));
      await writer.close();
    });

    it('is rejected permanently once a larger fence has written', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const older = await writerOf(readModel, projection, { fence: 1 });
      await older.write({
        documents: [thing('a', 1, { name: 'older' })],
        from: BEGINNING,
        to: at(1),
      });
      const newer = await writerOf(await harness().another(), projection, { fence: 2 });
      await newer.write({ documents: [thing('a', 2, { name: 'newer' })], from: at(1), to: at(2) });
      await readModel.switchTo(projection, 1);
      const paused = thing('a', 2, { name: 'from before the pause' });
      await rejectsWith('FENCED', older.write({ documents: [paused], from: at(1), to: at(2) }));
      await rejectsWith('FENCED', older.write({ documents: [], from: at(2), to: at(3) }));
      expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ name: 'newer' });
      await newer.write({ documents: [thing('b', 3, {})], from: at(2), to: at(3) });
      expect(await newer.checkpoint()).to.equal(at(3));
      const late = writerOf(readModel, projection, { fence: 1 }).then(async (writer) => {
        try {
          await writer.write({ documents: [], from: at(3), to: at(4) });
        } finally {
          await writer.close();
        }
      });
      await rejectsWith('FENCED', late);
      await Promise.all([older.close(), newer.close()]);
    });

    it('may use the same fence as an earlier writer, or a larger one', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      for (const [i, fence] of [3, 3, 7].entries()) {
        const writer = await writerOf(readModel, projection, { fence });
        await writer.write({ documents: [], from: i === 0 ? BEGINNING : at(i), to: at(i + 1) });
        await writer.close();
      }
      await readModel.switchTo(projection, 1);
      expect(await readModel.checkpoint(projection)).to.equal(at(3));
    });

    it('may run at the same time as another, and one of two equal batches counts', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const documents = Array.from({ length: 50 }, (_, i) =>
        thing(`k${String(i).padStart(2, '0')}`, i + 1, { amount: i }),
      );
      const writers = [
        await writerOf(readModel, projection),
        await writerOf(await harness().another(), projection),
      ];
      const outcomes = await Promise.allSettled(
        writers.map((writer) => writer.write({ documents, from: BEGINNING, to: at(50) })),
      );
      expect(outcomes.map(({ status }) => status)).to.have.members(['fulfilled', 'rejected']);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') {
          await rejectsWith('FENCED', Promise.reject(outcome.reason as Error));
        }
      }
      await Promise.all(writers.map((writer) => writer.close()));
      await readModel.switchTo(projection, 1);
      const kept = await contents(readModel, projection);
      expect([...kept.values()]).to.deep.equal(documents);
    });
  });
}
