import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { join } from 'node:path';
import { silent } from '../../../observability/telemetry.ts';
import type { Filter, Projection, ReadModel, ViewWriter } from '../../../projections/read-model.ts';
import { compileCount } from '../../../stores/sqlite/read-model/query-sql.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import {
  expected,
  fill,
  thing,
  thingsProjection,
  writerOf,
  type Thing,
  type Written,
} from '../../contracts/read-model-things.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('tallies beside the documents', () => {
  const directory = useTemporaryDirectory();
  let readModel: ReadModel;
  beforeEach(async () => {
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
  });
  afterEach(() => readModel.close());

  const projectionOf = (): Projection<Thing> => ({
    ...thingsProjection(),
    tallies: [{ fields: ['team', 'active'], hourOf: 'name' }],
  });
  const timeOf = (number: number): string =>
    new Date(Date.UTC(2026, 0, 1) + number * 700_000).toISOString();
  const thingOf = (number: number, position: number): Written =>
    thing(`k${String(number)}`, position, {
      team: ['red', 'blue', null][(number + position) % 3] ?? null,
      active: position % 2 === 0,
      name: number % 10 === 0 ? null : timeOf(number),
    });
  const team: Filter = { field: 'team', op: 'eq', value: 'red' };
  const active: Filter = { field: 'active', op: 'eq', value: true };
  const after: Filter = { field: 'name', op: 'gt', value: timeOf(20) };
  const before: Filter = { field: 'name', op: 'lt', value: timeOf(70) };
  const asked: readonly (readonly Filter[])[] = [
    [],
    [team],
    [active],
    [team, active],
    [after],
    [before],
    [after, before],
    [team, after, before],
    [{ field: 'team', op: 'in', value: ['red', 'blue', 'blue'] }, active],
    [{ field: 'team', op: 'in', value: ['red', 'none'] }, after, before],
    [{ field: 'team', op: 'in', value: [] }],
    [{ field: 'team', op: 'in', value: ['red', ''] }],
    [active, { field: 'name', op: 'gte', value: timeOf(31) }],
    [{ field: 'name', op: 'lte', value: timeOf(31) }],
    [
      { ...after, value: timeOf(31) },
      { ...before, value: timeOf(32) },
    ],
    [
      { ...after, value: timeOf(70) },
      { ...before, value: timeOf(20) },
    ],
    [{ field: 'team', op: 'eq', value: null }],
    [{ field: 'team', op: 'eq', value: 'none' }],
    [team, { field: 'amount', op: 'eq', value: 3 }],
    [{ ...after, value: 'x' }],
  ];

  const check = async (projection: Projection<Thing>, documents: readonly Written[]) => {
    for (const filters of asked) {
      const all = expected(documents, { filters, sort: [], limit: Infinity });
      const count = await readModel.count(projection, filters);
      expect(count, JSON.stringify(filters)).to.equal(all.length);
    }
  };

  it('are right after a bulk fill, changes, removals and repetitions', async () => {
    const projection = projectionOf();
    const filled = Array.from({ length: 1_100 }, (_, i) => thingOf(i, i + 1));
    await fill(readModel, projection, filled);
    await check(projection, filled);
    const writer = await writerOf(readModel, projection);
    const from = await writer.checkpoint();
    const changed = Array.from({ length: 60 }, (_, i) => thingOf(i * 2, 2_000 + i));
    const removed = [1, 3, 5].map((i) => thing(`k${String(i)}`, 3_000 + i, null));
    const documents = [...changed, ...removed];
    const to = documents.at(-1)?.position ?? from;
    await writer.write({ documents, from, to });
    // Repeated documents change nothing.
    await writer.write({ documents: changed, from: to, to });
    const now = new Map(filled.map((each) => [each.key, each]));
    for (const each of documents) now.set(each.key, each);
    const left = [...now.values()].filter(({ document }) => document !== null);
    await check(projection, left);
    await writer.close();
  });

  it('are maintained during a bulk fill, even if it was begun by a release that built them at the end', async () => {
    const projection = projectionOf();
    const now = new Map<string, Written>();
    const write = async (writer: ViewWriter, documents: readonly Written[]): Promise<void> => {
      const from = await writer.checkpoint();
      await writer.write({ documents, from, to: documents.at(-1)?.position ?? from });
      for (const each of documents) now.set(each.key, each);
    };
    const begun = await writerOf(readModel, projection, { bulk: true });
    await write(
      begun,
      Array.from({ length: 400 }, (_, i) => ({ ...thingOf(i, i + 1), isFirst: true })),
    );
    await write(
      begun,
      Array.from({ length: 90 }, (_, i) => thingOf(i * 3, 1_000 + i)),
    );
    await begun.close();
    const database = new DatabaseSync(
      join(directory(), `${projection.name}-s${String(projection.schema)}-g1.db`),
    );
    // As an older release leaves them after resuming the fill.
    database.exec('DELETE FROM tally_0 WHERE f_active = 1');
    database.close();
    const goesOn = await writerOf(readModel, projection, { bulk: true });
    await write(
      goesOn,
      [5, 7, 9].map((i) => thing(`k${String(i)}`, 2_000 + i, null)),
    );
    await write(
      goesOn,
      Array.from({ length: 200 }, (_, i) => thingOf(350 + i, 3_000 + i)),
    );
    await goesOn.finish();
    await goesOn.close();
    await readModel.switchTo(projection, 1);
    await check(
      projection,
      [...now.values()].filter(({ document }) => document !== null),
    );
  });

  it('are summed up for their fields, and counted only at the ends of a span', () => {
    const sqlOf = (filters: readonly Filter[]): readonly string[] =>
      compileCount(projectionOf(), filters).plans.rare.map(({ sql }) => sql);
    expect(sqlOf([team, active])).to.have.length(1);
    expect(sqlOf([team])[0]).to.match(/FROM tally_0/);
    const span = sqlOf([team, after, before]);
    expect(span[0]).to.match(/FROM tally_0 WHERE f_team = \? AND hour > \? AND hour < \?/);
    expect(span.slice(1)).to.have.length(2);
    expect(sqlOf([{ field: 'amount', op: 'eq', value: 3 }])[0]).to.not.match(/tally/);
  });
});
