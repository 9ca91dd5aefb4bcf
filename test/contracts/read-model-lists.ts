import { expect } from 'chai';
import { BEGINNING } from '../../domain/event-store.ts';
import type { Cut, Listed, ListQuery, Projection } from '../../projections/read-model.ts';
import { Signal } from '../support/signals.ts';
import {
  at,
  fill,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type ReadModelHarness,
  type Thing,
} from './read-model-things.ts';

const everything: ListQuery = { filters: [], sort: [], limit: 1_000 };

/** Batches that are written while lists are read. */
const BATCHES = 100;

/** Lists: a page, its total and its position at once. */
export function describeLists(harness: () => ReadModelHarness): void {
  describe('a list', () => {
    it('is of one instant during concurrent writes', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [thing('k000', 1, { team: 'red' })]);
      const reader = await harness().another();
      let over = false;
      const seen = new Signal<Listed>('a list');
      // Without transactions, a list needs a pause between writes, so there is a pause after some
      // batches.
      const writing = writeOneByOne(harness, projection, () => seen.next()).finally(
        () => (over = true),
      );
      const reading = async (query: ListQuery): Promise<void> => {
        while (!over) seen.send(await reader.list(projection, query));
      };
      const ofTeam: ListQuery = {
        ...everything,
        filters: [{ field: 'team', op: 'eq', value: 'red' }],
      };
      await Promise.all([writing, reading(everything), reading(ofTeam)]);
      for (const { documents, total, position, hasMore } of seen.values) {
        expect({ total, position, hasMore }).to.deep.equal({
          total: documents.length,
          position: at(documents.length),
          hasMore: false,
        });
      }
    });

    it('mixes no generations when another goes live meanwhile', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const few = Array.from({ length: 3 }, (_, i) => thing(`k${i}`, i + 1, { name: 'first' }));
      const many = Array.from({ length: 30 }, (_, i) => thing(`k${i}`, i + 1, { name: 'second' }));
      await fill(readModel, projection, many, 2);
      await fill(readModel, projection, few, 1);
      const names = new Set<unknown>();
      for (let turn = 0; turn < 30; turn += 1) {
        const listing = Array.from({ length: 3 }, () => readModel.list(projection, everything));
        await readModel.switchTo(projection, turn % 2 === 0 ? 2 : 1);
        for (const { documents, total, position } of await Promise.all(listing)) {
          const found = new Set(documents.map(({ text }) => (JSON.parse(text) as Thing).name));
          expect(found.size).to.equal(1);
          for (const name of found) names.add(name);
          const expected = found.has('first') ? 3 : 30;
          expect([documents.length, total, position]).to.deep.equal([
            expected,
            expected,
            at(expected),
          ]);
        }
      }
      expect([...names]).to.have.members(['first', 'second']);
    });

    it('reports whether more documents follow its page, from the start and after a document', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, fiveOf({ name: 'n' }));
      const pages = [
        { limit: 2 },
        { limit: 5 },
        { limit: 2, offset: 3 },
        { limit: 2, after: { values: [], key: 'k1' } },
        { limit: 3, after: { values: [], key: 'k1' } },
        { limit: 0 },
      ];
      const found: unknown[] = [];
      for (const page of pages) {
        const { documents, hasMore, total } = await readModel.list(projection, {
          ...everything,
          ...page,
        });
        found.push([documents.map(({ key }) => key).join(' '), hasMore, total]);
      }
      expect(found).to.deep.equal([
        ['k0 k1', true, 5],
        ['k0 k1 k2 k3 k4', false, 5],
        ['k3 k4', false, 5],
        ['k2 k3', true, 5],
        ['k2 k3 k4', false, 5],
        ['', true, 5],
      ]);
    });

    it('counts by separate filters, or not at all', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [
        ...fiveOf({ team: 'red' }),
        thing('k9', 9, { team: 'blue' }),
      ]);
      const counted = [{ field: 'team', op: 'eq', value: 'blue' }] as const;
      expect((await readModel.list(projection, { ...everything, counted })).total).to.equal(1);
      expect((await readModel.list(projection, { ...everything, counted: null })).total).to.equal(
        null,
      );
    });

    it('ends early when its documents exceed the byte limit, but never before the first', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      // Each has about 2,000 bytes and 1,000 characters.
      await fill(readModel, projection, fiveOf({ about: 'ü'.repeat(1_000) }));
      const sizes: unknown[] = [];
      for (const mostBytes of [1, 5_000, 100_000]) {
        const page = await readModel.list(projection, { ...everything, mostBytes });
        sizes.push([page.documents.length, page.hasMore, page.total]);
      }
      expect(sizes).to.deep.equal([
        [1, true, 5],
        [2, true, 5],
        [5, false, 5],
      ]);
    });

    it('cuts values over the limit, and leaves everything else unchanged', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const long = 'ü'.repeat(1_000);
      const about = { first: long, list: [{ result: long }, { result: 'short' }] };
      await fill(readModel, projection, [
        thing('a', 1, { name: 'large', team: 'red', about }),
        thing('b', 2, { name: 'small', team: 'red', about: { first: 'short' } }),
      ]);
      const cut: Cut = {
        maxBytes: 1_000,
        values: [
          { path: ['about', 'first'], preview: false },
          { path: ['about', 'list', '*', 'result'], preview: true },
        ],
        omitted: ['team'],
      };
      // All documents fit after the cut.
      const page = await readModel.list(projection, { ...everything, cut, mostBytes: 3_000 });
      const marker = { truncated: true, size_bytes: 2_002 };
      expect(page.documents.map(({ text }) => JSON.parse(text) as Thing)).to.deep.equal([
        {
          name: 'large',
          about: {
            first: marker,
            list: [{ result: { ...marker, preview: `"${'ü'.repeat(999)}` } }, { result: 'short' }],
          },
        },
        { name: 'small', team: 'red', about: { first: 'short' } },
      ]);
    });

    it('is rejected while there is no view', async () => {
      const { readModel } = harness();
      await rejectsWith('NO_VIEW', readModel.list(thingsProjection(), everything));
    });

    it('is empty for an empty view, at the beginning of the log', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, []);
      expect(await readModel.list(projection, everything)).to.deep.equal({
        documents: [],
        hasMore: false,
        total: 0,
        position: BEGINNING,
      });
    });
  });
}

const fiveOf = (document: Thing) =>
  Array.from({ length: 5 }, (_, i) => thing(`k${i}`, i + 1, document));

/**
 * A document with each batch, so that its number shows the position.
 * @param written called after every fifth batch
 */
async function writeOneByOne(
  harness: () => ReadModelHarness,
  projection: Projection,
  written: () => Promise<unknown>,
): Promise<void> {
  const writer = await writerOf(harness().readModel, projection);
  for (let number = 1; number <= BATCHES; number += 1) {
    const key = `k${String(number).padStart(3, '0')}`;
    const documents = [thing(key, number + 1, { team: 'red', name: key })];
    await writer.write({ documents, from: at(number), to: at(number + 1) });
    if (number % 5 === 0) await written();
  }
  await writer.close();
}
