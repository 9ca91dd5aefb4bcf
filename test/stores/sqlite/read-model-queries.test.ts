import { expect } from 'chai';
import { DatabaseSync } from '@photostructure/sqlite';
import { silent } from '../../../observability/telemetry.ts';
import type { Filter, Projection, Query, ReadModel } from '../../../projections/read-model.ts';
import {
  compileCount,
  compileFind,
  isPointQuery,
  type Plan,
} from '../../../stores/sqlite/read-model/query-sql.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import {
  columnsOf,
  createIndexes,
  createTables,
} from '../../../stores/sqlite/read-model/view-table.ts';
import {
  expected,
  fill,
  keysOf,
  thing,
  thingsProjection,
  type Thing,
  type Written,
} from '../../contracts/read-model-things.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a query of the embedded read model', () => {
  const directory = useTemporaryDirectory();
  let readModel: ReadModel | undefined;
  afterEach(async () => {
    await readModel?.close();
    readModel = undefined;
  });

  const cases: readonly (readonly [string, Partial<Query>])[] = [
    ['by its key alone', {}],
    ['in the order of an index', { sort: [{ field: 'amount', direction: 'descending' }] }],
    [
      'with a filter on one field, in the order of the next field of the index',
      {
        filters: [{ field: 'team', op: 'eq', value: 'red' }],
        sort: [{ field: 'amount', direction: 'descending' }],
      },
    ],
    [
      'after a cursor',
      {
        filters: [{ field: 'team', op: 'eq', value: 'red' }],
        sort: [{ field: 'amount', direction: 'descending' }],
        after: { values: [3], key: 'k' },
      },
    ],
    [
      'after a cursor with null',
      {
        sort: [{ field: 'amount', direction: 'ascending' }],
        after: { values: [null], key: 'k' },
      },
    ],
    ['after a cursor with a key alone', { filters: [], sort: [], after: { values: [], key: 'k' } }],
    [
      'with a filter on a common entry of a list',
      {
        filters: [{ field: 'tags', op: 'has', value: 'x' }],
        sort: [{ field: 'amount', direction: 'ascending' }],
      },
    ],
  ];
  for (const [sentence, query] of cases) {
    it(`${sentence} is read from an index, without sorting`, () => {
      const plan = compileFind(thingsProjection(), { filters: [], sort: [], limit: 10, ...query });
      const steps = explain(plan.plans.common, true);
      expect(steps.join('\n')).to.match(/INDEX/);
      expect(steps.join('\n')).to.not.match(/TEMP B-TREE|SCAN documents$/m);
    });
  }

  describe('with several possible indexes', () => {
    const indexes = [['name'], ['team', 'amount'], ['team', 'name'], ['team', 'active', 'name']];
    const red: Filter = { field: 'team', op: 'eq', value: 'red' };
    const byName = [{ field: 'name', direction: 'descending' }] as const;
    const later: Filter = { field: 'name', op: 'gt', value: 'm' };
    const some: Filter = { field: 'amount', op: 'eq', value: 3 };
    const active: Filter = { field: 'active', op: 'eq', value: true };
    const ways: readonly (readonly [string, readonly Filter[], Query['sort'], string])[] = [
      ['the order', [red], byName, 'by_team_and_name'],
      ['the order and the field of a range', [later], byName, 'by_name'],
      [
        'the most fields with a required value',
        [red, active, later],
        byName,
        'by_team_and_active_and_name',
      ],
      [
        'a field with a required value, not just the field of a range',
        [later, red],
        byName,
        'by_team_and_name',
      ],
      [
        'the order, even if another has more fields with a required value',
        [red, some],
        byName,
        'by_team_and_name',
      ],
      [
        'the fields with a required value, if there is no order',
        [some, red],
        [],
        'by_team_and_amount',
      ],
    ];
    for (const [sentence, filters, sort, index] of ways) {
      it(`uses the index that has ${sentence}`, () => {
        const projection = { ...thingsProjection(), indexes };
        const { plans } = compileFind(projection, { filters, sort, limit: 10 });
        expect(explain(plans.rare, true, projection).join('\n')).to.include(`INDEX ${index} (`);
        const counted = compileCount(projection, filters).plans.rare;
        expect(explain(counted, false, projection).join('\n')).to.match(/INDEX by_\w+ \(/);
      });
    }

    it('reads covered fields from the index, not from the documents', () => {
      const projection = {
        ...thingsProjection(),
        indexes: [['team', 'amount'], ['name']],
        covered: [['active', 'tags', 'name'], []],
      };
      for (const filters of [
        [red, active],
        [red, active, later],
        [red, { ...active, value: null }],
      ]) {
        const { plans } = compileCount(projection, filters);
        const steps = explain(plans.rare, false, projection).join('\n');
        expect(steps).to.include('USING COVERING INDEX by_team_and_amount');
      }
    });

    it('uses a sparse index only for filters with a value', () => {
      const projection = {
        ...thingsProjection(),
        indexes: [['team', 'amount'], ['team']],
        sparse: ['amount'],
      };
      const stepsOf = (filters: readonly Filter[]): string =>
        explain(compileCount(projection, filters).plans.rare, false, projection).join('\n');
      expect(stepsOf([red, some])).to.include('by_team_and_amount (');
      expect(stepsOf([red, { field: 'amount', op: 'gt', value: 3 }])).to.include(
        'by_team_and_amount (',
      );
      expect(stepsOf([red])).to.include('by_team (');
      expect(stepsOf([red, { field: 'amount', op: 'eq', value: null }])).to.include('by_team (');
    });
  });

  it('stores no unqueried prefix in a field and its sparse index', async () => {
    const projection = { ...thingsProjection(), sparse: ['team'], unqueried: { team: 're' } };
    const opened = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    readModel = opened;
    const documents = ['red', 'blue', 'relay'].map((team, i) =>
      thing(`k${String(i)}`, i + 1, { team }),
    );
    await fill(opened, projection, documents);
    const of = async (team: string): Promise<readonly unknown[]> => {
      const filters = [{ field: 'team', op: 'eq', value: team }] as const;
      const found = await opened.find(projection, { filters, sort: [], limit: 5 });
      return found.map(({ document }) => document.team);
    };
    expect(await of('blue')).to.deep.equal(['blue']);
    expect(await of('red')).to.deep.equal([]);
    expect((await opened.get(projection, 'k2'))?.document.team).to.equal('relay');
    expect(await opened.count(projection, [{ field: 'team', op: 'eq', value: null }])).to.equal(2);
  });

  it('finds all documents with a value through a sparse index, from the start and page by page', async () => {
    const projection = { ...thingsProjection(), sparse: ['amount'] };
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const documents: readonly Written[] = Array.from({ length: 120 }, (_, i) =>
      thing(`k${String(i)}`, i + 1, {
        team: ['red', 'blue', 'green'][i % 3] ?? null,
        amount: i % 4 === 0 ? null : i % 11,
        active: i % 2 === 0,
      }),
    );
    await fill(readModel, projection, documents);
    const teams: readonly (readonly Filter[])[] = [
      [{ field: 'team', op: 'in', value: ['red', 'green', 'none'] }],
      [{ field: 'team', op: 'eq', value: 'red' }],
      [],
    ];
    for (const team of teams) {
      for (const direction of ['ascending', 'descending'] as const) {
        const filters: readonly Filter[] = [...team, { field: 'amount', op: 'gte', value: 2 }];
        const whole: Query = { filters, sort: [{ field: 'amount', direction }], limit: 7 };
        const all = expected(documents, { ...whole, limit: Infinity });
        expect(await readModel.count(projection, filters)).to.equal(all.length);
        const found: string[] = [];
        for (let after: Query['after']; ;) {
          const page = await readModel.find(projection, { ...whole, ...(after && { after }) });
          found.push(...page.map(({ key }) => key));
          const last = page.at(-1);
          if (last === undefined) break;
          after = { values: [last.document.amount ?? null], key: last.key };
        }
        expect(found).to.deep.equal(all);
      }
    }
  });

  it('that counts by an index does not touch the documents', () => {
    const compiled = compileCount(thingsProjection(), [
      { field: 'team', op: 'eq', value: 'red' },
      { field: 'amount', op: 'gt', value: 3 },
    ]);
    expect(explain(compiled.plans.rare, false).join('\n')).to.match(/USING COVERING INDEX/);
  });

  it('recognises a point query', () => {
    const red = { field: 'team', op: 'eq', value: 'red' } as const;
    const byAmount = [{ field: 'amount', direction: 'descending' }] as const;
    const first: Query = { filters: [red], sort: byAmount, limit: 1 };
    const isKnown = (changes: Partial<Query>): boolean =>
      isPointQuery(thingsProjection(), { ...first, ...changes });
    expect(isKnown({})).to.equal(true);
    expect(isKnown({ filters: [] })).to.equal(true);
    const others: readonly Partial<Query>[] = [
      { limit: 50 },
      { sort: [] },
      { offset: 1 },
      { after: { values: [3], key: 'k' } },
      { filters: [red, { field: 'active', op: 'eq', value: true }] },
      { filters: [red, { field: 'amount', op: 'gt', value: 3 }] },
      { filters: [{ field: 'tags', op: 'has', value: 'x' }], sort: [] },
      { sort: [{ field: 'name', direction: 'descending' }] },
      { filters: [], sort: [...byAmount, { field: 'name', direction: 'ascending' }] },
    ];
    for (const other of others) expect(isKnown(other), JSON.stringify(other)).to.equal(false);
  });

  it('finds the first document of a page with a point query', async () => {
    const projection = thingsProjection();
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const documents = Array.from({ length: 100 }, (_, i) =>
      thing(`k${String(i)}`, i + 1, { team: ['red', 'blue'][i % 2] ?? null, amount: i % 7 }),
    );
    await fill(readModel, projection, documents);
    for (const value of ['red', 'blue', 'none']) {
      const query: Query = {
        filters: [{ field: 'team', op: 'eq', value }],
        sort: [{ field: 'amount', direction: 'descending' }],
        limit: 1,
      };
      expect(await keysOf(readModel, projection, query)).to.deep.equal(expected(documents, query));
    }
  });

  it('merges the index ranges of several values in order', async () => {
    const projection = thingsProjection();
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const documents: readonly Written[] = Array.from({ length: 200 }, (_, i) =>
      thing(`k${String(i)}`, i + 1, {
        team: ['red', 'blue', 'green'][i % 3] ?? null,
        amount: i % 7 === 0 ? null : i % 11,
        active: i % 2 === 0,
      }),
    );
    await fill(readModel, projection, documents);
    for (const direction of ['ascending', 'descending'] as const) {
      for (const offset of [0, 20]) {
        const query: Query = {
          filters: [
            { field: 'team', op: 'in', value: ['green', 'red', 'red', 'none'] },
            { field: 'active', op: 'eq', value: true },
          ],
          sort: [{ field: 'amount', direction }],
          limit: 15,
          offset,
        };
        const { plans } = compileFind(projection, query);
        expect(plans.rare[0]?.sql).to.match(/UNION ALL/);
        expect(await keysOf(readModel, projection, query)).to.deep.equal(
          expected(documents, query),
        );
      }
    }
  });

  it('finds the same documents by a common entry of a list as by a rare one', async () => {
    const projection = thingsProjection();
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const documents = Array.from({ length: 2_500 }, (_, i) =>
      thing(`k${String(i)}`, i + 1, {
        amount: (i * 7_919) % 1_000,
        tags: i % 50 === 0 ? ['common', 'rare'] : ['common'],
      }),
    );
    await fill(readModel, projection, documents);
    for (const value of ['common', 'rare', 'none']) {
      const query: Query = {
        filters: [
          { field: 'tags', op: 'has', value },
          { field: 'amount', op: 'gte', value: 100 },
        ],
        sort: [{ field: 'amount', direction: 'ascending' }],
        limit: 30,
      };
      expect(await keysOf(readModel, projection, query)).to.deep.equal(expected(documents, query));
      const all = expected(documents, { ...query, limit: Infinity });
      expect(await readModel.count(projection, query.filters)).to.equal(all.length);
    }
  });

  it('does not block the event loop when it takes long', async () => {
    const projection = thingsProjection();
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const documents = Array.from({ length: 20_000 }, (_, i) =>
      thing(`k${String(i)}`, i + 1, { name: 'x'.repeat(500) }),
    );
    await fill(readModel, projection, documents);
    let turns = 0;
    let done = false;
    const counting = readModel
      .count(projection, [{ field: 'name', op: 'contains', value: 'y' }])
      .finally(() => (done = true));
    while (!done) {
      turns += 1;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(await counting).to.equal(0);
    expect(turns).to.be.greaterThan(10);
  });

  it('rejects a value of another kind than its field, and a sort by a list', () => {
    const projection = thingsProjection();
    const find = (query: Partial<Query>) => () =>
      compileFind(projection, { filters: [], sort: [], limit: 1, ...query });
    const wrong: readonly Partial<Query>[] = [
      { filters: [{ field: 'amount', op: 'eq', value: '5' }] },
      { filters: [{ field: 'name', op: 'in', value: [1] }] },
      { filters: [{ field: 'amount', op: 'contains', value: '5' }] },
      { filters: [{ field: 'name', op: 'has', value: 'x' }] },
      { filters: [{ field: 'tags', op: 'eq', value: 'x' }] },
      { sort: [{ field: 'tags', direction: 'ascending' }] },
      { after: { values: [1], key: 'a' } },
      { after: { values: [], key: 'a' }, offset: 1 },
    ];
    for (const query of wrong) expect(find(query), JSON.stringify(query)).to.throw(TypeError);
  });
});

/** The steps of SQLite's plan for each statement, over an empty view. */
function explain(
  plan: Plan,
  limited: boolean,
  projection: Projection<Thing> = thingsProjection(),
): readonly string[] {
  const database = new DatabaseSync(':memory:');
  createTables(database, columnsOf(projection), null);
  createIndexes(database, projection, columnsOf(projection));
  const steps = plan.flatMap(({ sql, parameters }) => {
    const values = limited ? [10, ...parameters] : parameters;
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as {
      detail: string;
    }[];
    return rows.map(({ detail }) => detail);
  });
  database.close();
  return steps;
}
