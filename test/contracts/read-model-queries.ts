import { expect } from 'chai';
import type { Filter, Projection, Query, ReadModel, Sort } from '../../projections/read-model.ts';
import {
  compare,
  expected,
  fill,
  keysOf,
  thing,
  thingsProjection,
  type ReadModelHarness,
  type Thing,
  type Written,
} from './read-model-things.ts';
import { randomBy } from '../support/random.ts';

/** The contract of `get`, `find` and `count`. Part of `describeReadModelContract`. */
export function describeQueries(harness: () => ReadModelHarness): void {
  const few: readonly Written[] = [
    thing('a', 1, { name: 'Alpha', team: 'red', amount: 5, active: true, tags: ['x', 'y'] }),
    thing('b', 2, { name: 'beta', team: 'blue', amount: -1.5, active: false, tags: ['y'] }),
    thing('c', 3, { name: 'ALPINE %_\\', team: 'red', amount: null, active: null, tags: [] }),
    thing('d', 4, { name: null, team: null, amount: 5, active: true, tags: null }),
    thing('e', 5, {}),
  ];

  describe('a filter', () => {
    const cases: readonly (readonly [string, Filter, string])[] = [
      ['finds equal strings', { field: 'team', op: 'eq', value: 'red' }, 'ac'],
      ['finds equal numbers', { field: 'amount', op: 'eq', value: 5 }, 'ad'],
      ['finds equal booleans', { field: 'active', op: 'eq', value: false }, 'b'],
      [
        'finds null fields and missing fields alike',
        { field: 'active', op: 'eq', value: null },
        'ce',
      ],
      ['finds greater numbers, never null', { field: 'amount', op: 'gt', value: -2 }, 'abd'],
      ['excludes the bound with gt', { field: 'amount', op: 'gt', value: 5 }, ''],
      ['includes the bound with gte', { field: 'amount', op: 'gte', value: 5 }, 'ad'],
      ['excludes the bound with lt', { field: 'amount', op: 'lt', value: 5 }, 'b'],
      ['includes the bound with lte', { field: 'amount', op: 'lte', value: 5 }, 'abd'],
      ['compares strings by their bytes', { field: 'name', op: 'lt', value: 'a' }, 'ac'],
      ['finds one of several strings', { field: 'team', op: 'in', value: ['blue', 'red'] }, 'abc'],
      ['finds one of several numbers', { field: 'amount', op: 'in', value: [-1.5, 7] }, 'b'],
      ['finds nothing with an empty list of values', { field: 'team', op: 'in', value: [] }, ''],
      [
        'finds a part of a string, ignoring case',
        { field: 'name', op: 'contains', value: 'aLP' },
        'ac',
      ],
      ['matches wildcards literally', { field: 'name', op: 'contains', value: '%_\\' }, 'c'],
      ['matches a full stop literally', { field: 'name', op: 'contains', value: 'b.t' }, ''],
      [
        'finds every string by an empty string',
        { field: 'name', op: 'contains', value: '' },
        'abc',
      ],
      ['finds an entry of a list', { field: 'tags', op: 'has', value: 'y' }, 'ab'],
      ['does not find a part of a list entry', { field: 'tags', op: 'has', value: '' }, ''],
    ];
    for (const [sentence, filter, keys] of cases) {
      it(sentence, async () => {
        const { readModel } = harness();
        const projection = thingsProjection();
        await fill(readModel, projection, few);
        expect((await keysOf(readModel, projection, { filters: [filter] })).join('')).to.equal(
          keys,
        );
        expect(await readModel.count(projection, [filter])).to.equal(keys.length);
      });
    }

    it('narrows the results of another filter', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, few);
      const filters: readonly Filter[] = [
        { field: 'tags', op: 'has', value: 'y' },
        { field: 'amount', op: 'gte', value: -2 },
        { field: 'amount', op: 'lt', value: 0 },
      ];
      expect(await keysOf(readModel, projection, { filters })).to.deep.equal(['b']);
      expect(await readModel.count(projection, filters)).to.equal(1);
    });

    it('is rejected on a field that the projection does not declare', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, few);
      for (const field of ['about', 'name" OR 1=1 --', '$where', 'key']) {
        const filters: readonly Filter[] = [{ field, op: 'eq', value: 'x' }];
        const refusals = await Promise.allSettled([
          readModel.count(projection, filters),
          readModel.find(projection, { filters, sort: [], limit: 1 }),
          readModel.find(projection, {
            filters: [],
            sort: [{ field, direction: 'ascending' }],
            limit: 1,
          }),
        ]);
        expect(refusals.map(({ status }) => status)).to.deep.equal(Array(3).fill('rejected'));
      }
    });

    it('takes values literally, whatever they look like', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const name = `'; DROP TABLE documents; -- {"$gt": ""}`;
      await fill(readModel, projection, [...few, thing('f', 6, { name, tags: ['$y', `"'`] })]);
      const filters: readonly Filter[] = [{ field: 'name', op: 'eq', value: name }];
      expect(await keysOf(readModel, projection, { filters })).to.deep.equal(['f']);
      const tagged: readonly Filter[] = [{ field: 'tags', op: 'has', value: `"'` }];
      expect(await keysOf(readModel, projection, { filters: tagged })).to.deep.equal(['f']);
      expect(await readModel.count(projection, [])).to.equal(6);
    });
  });

  describe('a read of values', () => {
    it('returns the values of every matching document, with null for missing fields', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const large = thing('f', 6, { name: '\u0001 ü"', about: 'x'.repeat(100_000) });
      await fill(readModel, projection, [...few, large, thing('g', 7, null)]);
      const read = async (filters: readonly Filter[], fields: readonly string[]) => {
        const found = await readModel.values(projection, { filters, fields });
        return Object.fromEntries(found.map(({ key, values }) => [key, values]));
      };
      expect(await read([], ['active', 'amount', 'name'])).to.deep.equal({
        a: [true, 5, 'Alpha'],
        b: [false, -1.5, 'beta'],
        c: [null, null, 'ALPINE %_\\'],
        d: [true, 5, null],
        e: [null, null, null],
        f: [null, null, '\u0001 ü"'],
      });
      const tagged: Filter = { field: 'tags', op: 'has', value: 'y' };
      expect(await read([tagged, { field: 'team', op: 'eq', value: 'red' }], [])).to.deep.equal({
        a: [],
      });
      expect(await read([{ field: 'team', op: 'eq', value: 'green' }], ['name'])).to.deep.equal({});
    });

    it('is rejected on a list, and on a field that the projection does not declare', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, few);
      const asked = ['tags', 'about', 'key', 'name" --'].map(async (field) =>
        readModel.values(projection, { filters: [], fields: [field] }),
      );
      const refusals = await Promise.allSettled(asked);
      expect(refusals.map(({ status }) => status)).to.deep.equal(Array(4).fill('rejected'));
    });
  });

  describe('an order', () => {
    it('puts null first when ascending and last when descending', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, few);
      const by = async (field: string, direction: Sort['direction']) =>
        (await keysOf(readModel, projection, { sort: [{ field, direction }] })).join('');
      expect(await by('amount', 'ascending')).to.equal('cebad');
      expect(await by('amount', 'descending')).to.equal('dabec');
      expect(await by('active', 'ascending')).to.equal('cebad');
      expect(await by('name', 'ascending')).to.equal('decab');
    });

    it('is by key without a sort', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, [...few].reverse());
      expect(await keysOf(readModel, projection, {})).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
      expect(await keysOf(readModel, projection, { limit: 2, offset: 1 })).to.deep.equal([
        'b',
        'c',
      ]);
    });

    it('is by UTF-8 bytes for strings in any script', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      const names = ['z', 'é', 'Z', '日本', '\u{1F600}', '\uFFFD', ''];
      await fill(
        readModel,
        projection,
        names.map((name, i) => thing(`k${String(i)}`, i + 1, { name })),
      );
      const found = await readModel.find(projection, {
        filters: [],
        sort: [{ field: 'name', direction: 'ascending' }],
        limit: 10,
      });
      expect(found.map(({ document }) => document.name)).to.deep.equal([...names].sort(compare));
    });
  });

  describe('a query over hundreds of documents', function () {
    this.timeout(180_000);
    const documents = manyThings();

    it('finds and counts the same as a plain search', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, documents);
      const random = randomBy(7);
      for (let round = 0; round < 120; round += 1) {
        const query = randomQuery(random);
        const found = await keysOf(readModel, projection, query);
        expect(found, JSON.stringify(query)).to.deep.equal(expected(documents, query));
        const all = expected(documents, { ...query, limit: Infinity, offset: 0 });
        const counted = await readModel.count(projection, query.filters);
        expect(counted, JSON.stringify(query.filters)).to.equal(all.length);
      }
    });

    it('returns the same by cursor as in one piece, whatever the order, ties and nulls', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, documents);
      const random = randomBy(11);
      const orders: readonly (readonly Sort[])[] = [
        [],
        ...(['ascending', 'descending'] as const).flatMap((first) => [
          [{ field: 'amount', direction: first }],
          [{ field: 'active', direction: first }],
          ...(['ascending', 'descending'] as const).map((second) => [
            { field: 'team', direction: first },
            { field: 'amount', direction: second },
          ]),
        ]),
        [
          { field: 'active', direction: 'descending' },
          { field: 'team', direction: 'ascending' },
          { field: 'amount', direction: 'descending' },
        ],
      ];
      for (const sort of orders) {
        for (const filters of [[], [randomFilter(random)]]) {
          const paged = await byCursor(readModel, projection, { filters, sort, limit: 41 });
          const whole = expected(documents, { filters, sort, limit: Infinity });
          expect(paged, JSON.stringify({ sort, filters })).to.deep.equal(whole);
        }
      }
    });

    it('returns the same by offset as in one piece', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, documents);
      const sort: readonly Sort[] = [{ field: 'team', direction: 'descending' }];
      const paged: string[] = [];
      for (let offset = 0; offset < documents.length; offset += 50) {
        paged.push(...(await keysOf(readModel, projection, { sort, limit: 50, offset })));
      }
      expect(paged).to.deep.equal(expected(documents, { filters: [], sort, limit: Infinity }));
    });

    it('continues after a document that no longer exists', async () => {
      const { readModel } = harness();
      const projection = thingsProjection();
      await fill(readModel, projection, documents);
      const sort: readonly Sort[] = [{ field: 'team', direction: 'ascending' }];
      const after = { values: ['red'], key: 'k0150-gone' };
      const found = await keysOf(readModel, projection, { sort, after });
      const whole = expected(documents, { filters: [], sort, limit: Infinity });
      const rest = whole.filter((key) => {
        const team = documents.find((one) => one.key === key)?.document?.team ?? null;
        const order = compare(team, 'red');
        return order > 0 || (order === 0 && key > after.key);
      });
      expect(found).to.deep.equal(rest);
    });
  });
}

/** Pages through a query, each from the last document of the one before. */
async function byCursor(
  readModel: ReadModel,
  projection: Projection<Thing>,
  query: Query,
): Promise<readonly string[]> {
  const keys: string[] = [];
  let page = await readModel.find(projection, query);
  while (page.length > 0 && keys.length < 10_000) {
    keys.push(...page.map(({ key }) => key));
    const last = page.at(-1);
    if (last === undefined) break;
    const values = query.sort.map(({ field }) => {
      const value = last.document[field] ?? null;
      return typeof value === 'object' ? null : value;
    });
    page = await readModel.find(projection, { ...query, after: { values, key: last.key } });
  }
  return keys;
}

const teams = ['red', 'blue', 'Red', 'grün', null, undefined];
const tags = ['x', 'y', 'z', 'x y', 'ü'];

/** 300 documents with many ties and nulls, the same on every run. */
function manyThings(): readonly Written[] {
  const random = randomBy(1);
  const documents: Written[] = [];
  for (let i = 0; i < 300; i += 1) {
    const team = pick(random, teams);
    const document: Thing = {
      name: pick(random, ['Report', 'report daily', 'Backup', 'naïve', null]),
      ...(team === undefined ? {} : { team }),
      amount: pick(random, [0, 1, 2, 2.5, -3, 1_767_225_600_000, null]),
      active: pick(random, [true, false, null]),
      tags: tags.filter(() => random() < 0.3),
    };
    documents.push(thing(`k${String(i).padStart(4, '0')}`, i + 1, document));
  }
  return documents;
}

function randomFilter(random: () => number): Filter {
  return pick<Filter>(random, [
    { field: 'team', op: 'eq', value: pick(random, ['red', 'blue', 'grün', null]) },
    { field: 'team', op: 'in', value: ['red', 'grün'] },
    { field: 'name', op: 'contains', value: pick(random, ['RE', 'daily', 'ï', 'nothing']) },
    {
      field: 'amount',
      op: pick(random, ['gt', 'gte', 'lt', 'lte'] as const),
      value: pick(random, [0, 2, 2.2]),
    },
    { field: 'amount', op: 'in', value: [2.5, 0, 99] },
    { field: 'active', op: 'eq', value: pick(random, [true, false, null]) },
    { field: 'tags', op: 'has', value: pick(random, tags) },
  ]);
}

function randomQuery(random: () => number): Query {
  const filters = Array.from({ length: Math.floor(random() * 4) }, () => randomFilter(random));
  const fields = ['name', 'team', 'amount', 'active'].filter(() => random() < 0.4);
  const sort = fields.map((field) => ({
    field,
    direction: pick(random, ['ascending', 'descending'] as const),
  }));
  return {
    filters,
    sort,
    limit: 1 + Math.floor(random() * 60),
    offset: pick(random, [0, 0, 3, 40]),
  };
}

function pick<T>(random: () => number, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}
