import { expect } from 'chai';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { BEGINNING } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { unavailable } from '../../../stores/sqlite/read-model/unavailable.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import {
  at,
  fill,
  keysOf,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the files of the embedded read model', () => {
  const directory = useTemporaryDirectory();
  let opened: ReadModel[] = [];
  let errors: string[] = [];
  const telemetry: Telemetry = {
    ...silent,
    log: {
      ...silent.log,
      warn: (message) => errors.push(message),
      error: (message) => errors.push(message),
    },
  };
  const open = async (): Promise<ReadModel> => {
    const readModel = await openSqliteReadModel({ directory: directory(), telemetry });
    opened.push(readModel);
    return readModel;
  };
  const fileOf = (projection: Projection, generation = 1) =>
    join(directory(), `${projection.name}-s${String(projection.schema)}-g${String(generation)}.db`);
  afterEach(async () => {
    await Promise.all(opened.map((readModel) => readModel.close()));
    opened = [];
    errors = [];
  });
  leavesNothingOpen();

  it('are one for each generation, beside the register', async () => {
    const readModel = await open();
    const projection = thingsProjection(3);
    await fill(readModel, projection, [thing('a', 1, {})], 12);
    expect(existsSync(fileOf(projection, 12))).to.equal(true);
    expect(existsSync(join(directory(), 'views.db'))).to.equal(true);
    await fill(readModel, projection, [thing('a', 1, {})], 13);
    await readModel.discard(projection, 12);
    for (const ending of ['', '-wal', '-shm']) {
      expect(existsSync(fileOf(projection, 12) + ending)).to.equal(false);
    }
  });

  it('have a WAL of four megabytes if they are small, and none once they are closed', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    const writer = await writerOf(readModel, projection);
    const wal = (): number => statSync(`${fileOf(projection)}-wal`).size;
    let longest = 0;
    for (let next = 1; next <= 1500; next += 1) {
      const documents = [thing('a', next, { count: next })];
      await writer.write({ documents, from: next === 1 ? BEGINNING : at(next - 1), to: at(next) });
      longest = Math.max(longest, wal());
    }
    expect(longest).to.be.within(3 * 2 ** 20, 5 * 2 ** 20);
    await writer.close();
    expect(existsSync(`${fileOf(projection)}-wal`) ? wal() : 0).to.equal(0);
  });

  it('are created again when one is not a database, and are no longer live', async () => {
    const projection = thingsProjection();
    writeFileSync(fileOf(projection), 'this is no database, but it is long enough to be looked at');
    const readModel = await open();
    const writer = await writerOf(readModel, projection);
    expect(await writer.checkpoint()).to.equal(BEGINNING);
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await writer.close();
    expect(errors.join()).to.match(/over: .*not a database/);
  });

  it('are created again when a checkpoint is damaged', async () => {
    const projection = thingsProjection();
    const before = await open();
    await fill(before, projection, [thing('a', 1, {})]);
    await before.close();
    overwriteTable(fileOf(projection), 'checkpoint');
    const readModel = await open();
    const writer = await writerOf(readModel, projection);
    expect(await writer.checkpoint()).to.equal(BEGINNING);
    expect(await readModel.liveGeneration(projection)).to.equal(null);
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await writer.close();
    expect(errors.join()).to.match(/over: .*damaged/);
  });

  it('are not a view when the live one is gone', async () => {
    const projection = thingsProjection();
    const before = await open();
    await fill(before, projection, [thing('a', 1, {})]);
    await before.close();
    for (const ending of ['', '-wal', '-shm']) rmSync(fileOf(projection) + ending, { force: true });
    const readModel = await open();
    expect(await readModel.liveGeneration(projection)).to.equal(null);
    await rejectsWith('NO_VIEW', readModel.get(projection, 'a'));
    expect(await readModel.checkpoint(projection)).to.equal(BEGINNING);
    const writer = await writerOf(readModel, projection);
    await writer.write({ documents: [], from: BEGINNING, to: at(1) });
    // An incomplete view must not be mistaken for a complete one, so it is live only after another switch.
    expect(await readModel.liveGeneration(projection)).to.equal(null);
    await readModel.switchTo(projection, 1);
    expect(await readModel.checkpoint(projection)).to.equal(at(1));
    await writer.close();
  });

  it('are deleted when a read finds damage, which their writer notices', async () => {
    const projection = thingsProjection();
    const filling = await open();
    await fill(
      filling,
      projection,
      Array.from({ length: 3_000 }, (_, i) =>
        thing(`k${String(i)}`, i + 1, { name: `name ${String(i)}`, about: 'x'.repeat(200) }),
      ),
    );
    await filling.close();
    damage(fileOf(projection));
    const readModel = await open();
    const writer = await writerOf(readModel, projection);
    expect(await writer.checkpoint()).to.equal(at(3_000));
    const reading = readModel.find(projection, {
      filters: [{ field: 'name', op: 'contains', value: 'name' }],
      sort: [],
      limit: 10_000,
    });
    await rejectsWith('NO_VIEW', reading);
    expect(await readModel.liveGeneration(projection)).to.equal(null);
    expect(existsSync(fileOf(projection))).to.equal(false);
    expect(errors.join()).to.match(/is damaged; deleted/);
    await rejectsWith('FENCED', writer.write({ documents: [], from: at(3_000), to: at(3_001) }));
    await writer.close();
    const anew = await writerOf(readModel, projection);
    expect(await anew.checkpoint()).to.equal(BEGINNING);
    await anew.close();
  });

  it('are deleted when a query finds damage among its documents', async () => {
    const projection = thingsProjection();
    const filling = await open();
    const documents = Array.from({ length: 3_000 }, (_, i) =>
      thing(`k${String(i)}`, i + 1, { name: 'x'.repeat(200) }),
    );
    await fill(filling, projection, documents);
    await filling.close();
    damage(fileOf(projection));
    const writer = await writerOf(await open(), projection);
    await rejectsWith('FENCED', writer.load(documents.map(({ key }) => key)));
    expect(existsSync(fileOf(projection))).to.equal(false);
    await writer.close();
  });

  it('are created again after a reboot during a bulk fill', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    const writer = await writerOf(readModel, projection, { bulk: true });
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await writer.close();
    const resumed = await writerOf(readModel, projection, { bulk: true });
    expect(await resumed.checkpoint(), 'after a mere restart of the process').to.equal(at(1));
    await resumed.close();
    change(fileOf(projection), "UPDATE checkpoint SET filling = 'an earlier start'");
    const anew = await writerOf(readModel, projection, { bulk: true });
    expect(await anew.checkpoint()).to.equal(BEGINNING);
    expect((await anew.load(['a'])).size).to.equal(0);
    await anew.close();
  });

  it('of an older release have no landmark until one is written, also for open readers', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    await fill(readModel, projection, [thing('a', 1, {})]);
    change(fileOf(projection), 'ALTER TABLE checkpoint DROP COLUMN landmark');
    expect(await readModel.checkpoint(projection)).to.equal(at(1));
    expect(await readModel.landmark(projection)).to.equal(null);
    const landmark = { stream: 'thing-1', revision: 1, id: 'event-1', createdAt: '' };
    const writer = await writerOf(readModel, projection);
    await writer.write({ documents: [], from: at(1), to: at(2), landmark });
    await writer.close();
    expect(await readModel.landmark(projection)).to.deep.equal(landmark);
    // Like a write of that release.
    change(fileOf(projection), `UPDATE checkpoint SET position = '${at(3)}', fence = 1`);
    expect(await readModel.checkpoint(projection)).to.equal(at(3));
    expect(await readModel.landmark(projection)).to.deep.equal(landmark);
  });

  it('in a bulk fill roll back to the last commit when a batch fails, and report that position', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    const writer = await writerOf(readModel, projection, { bulk: true });
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    const cyclic: Record<string, JsonObject> = {};
    cyclic['self'] = cyclic;
    const failing = writer.write({
      documents: [{ key: 'b', position: at(2), document: cyclic }],
      from: at(1),
      to: at(2),
    });
    expect(await failing.catch((error: unknown) => error)).to.be.instanceOf(TypeError);
    const from = await writer.checkpoint();
    expect((await writer.load(['a'])).size).to.equal(from === BEGINNING ? 0 : 1);
    await writer.write({ documents: [thing('a', 1, {})], from, to: at(1) });
    await writer.finish();
    await writer.close();
    await readModel.switchTo(projection, 1);
    expect(await keysOf(readModel, projection, {})).to.deep.equal(['a']);
  });

  it('are created again when an interrupted fill is damaged', async () => {
    const projection: Projection = { ...thingsProjection(), tallies: [{ fields: ['team'] }] };
    const readModel = await open();
    const begun = await writerOf(readModel, projection, { bulk: true });
    const documents = Array.from({ length: 500 }, (_, i) => thing(`k${String(i)}`, i + 1, {}));
    await begun.write({ documents, from: BEGINNING, to: at(500) });
    await begun.close();
    damage(fileOf(projection));
    await rejectsWith('FENCED', writerOf(readModel, projection, { bulk: true }));
    expect(existsSync(fileOf(projection))).to.equal(false);
    const anew = await writerOf(readModel, projection, { bulk: true });
    expect(await anew.checkpoint()).to.equal(BEGINNING);
    await anew.close();
  });

  it('are finished by a writer that resumes an interrupted fill without bulk', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    const bulk = await writerOf(readModel, projection, { bulk: true });
    await bulk.write({
      documents: [thing('a', 1, { team: 'red', tags: ['x'] })],
      from: BEGINNING,
      to: at(1),
    });
    await bulk.close();
    const writer = await writerOf(readModel, projection);
    await writer.write({
      documents: [thing('b', 2, { team: 'red', tags: ['x'] })],
      from: at(1),
      to: at(2),
    });
    await writer.close();
    await readModel.switchTo(projection, 1);
    const tagged = await keysOf(readModel, projection, {
      filters: [{ field: 'tags', op: 'has', value: 'x' }],
    });
    expect(tagged).to.deep.equal(['a', 'b']);
    expect(select(fileOf(projection), 'SELECT filling FROM checkpoint')).to.deep.equal([
      { filling: null },
    ]);
    const indexes = select(
      fileOf(projection),
      "SELECT count(*) AS n FROM sqlite_schema WHERE name LIKE 'by_%'",
    );
    expect(indexes).to.deep.equal([{ n: 4 }]);
  });

  it('of a newer release are rejected by name, and left unchanged', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    await fill(readModel, projection, [thing('a', 1, {})]);
    change(fileOf(projection), 'PRAGMA user_version = 99');
    const refused = await writerOf(readModel, projection).catch((error: unknown) => error);
    expect(String(refused)).to.match(/written by a newer release/);
    await rejectsWith('UNAVAILABLE', writerOf(readModel, projection));
    expect(existsSync(fileOf(projection))).to.equal(true);
  });

  it('that lack a field cause an error that asks for a new schema number', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    await fill(readModel, projection, [thing('a', 1, {})]);
    const changed = { ...projection, fields: { ...projection.fields, extra: 'text' as const } };
    const refused = await writerOf(readModel, changed).catch((error: unknown) => error);
    expect(String(refused)).to.match(/"extra".*new schema number/);
  });

  it('are created again when the register is damaged', async () => {
    const projection = thingsProjection();
    const before = await open();
    await fill(before, projection, [thing('a', 1, {})]);
    await before.close();
    for (const ending of ['', '-wal', '-shm'])
      rmSync(join(directory(), `views.db${ending}`), { force: true });
    writeFileSync(join(directory(), 'views.db'), 'no database at all, whatever its name may say');
    const readModel = await open();
    expect(await readModel.liveGeneration(projection)).to.equal(null);
    expect(await readModel.generations(projection)).to.deep.equal([1]);
    await readModel.switchTo(projection, 1);
    expect(await keysOf(readModel, projection, {})).to.deep.equal(['a']);
  });

  it('keep nothing of a batch that fails half-way', async () => {
    const projection = thingsProjection();
    const readModel = await open();
    await fill(readModel, projection, [thing('a', 1, { name: 'before' })]);
    const writer = await writerOf(readModel, projection);
    const cyclic: Record<string, JsonObject> = {};
    cyclic['self'] = cyclic;
    const failing = writer.write({
      documents: [
        thing('a', 2, { name: 'after' }),
        { key: 'b', position: at(2), document: cyclic },
      ],
      from: at(1),
      to: at(2),
    });
    expect(await failing.catch((error: unknown) => error)).to.be.instanceOf(TypeError);
    expect(await writer.checkpoint()).to.equal(at(1));
    expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ name: 'before' });
    await writer.write({
      documents: [thing('a', 2, { name: 'after' })],
      from: at(1),
      to: at(2),
    });
    await writer.close();
  });

  it('report a full or read-only disk in words', () => {
    for (const [code, words] of [
      [13, /UNAVAILABLE: .*disk is full/],
      [8, /UNAVAILABLE: .*read-only/],
      [10, /UNAVAILABLE: .*disk reports an error/],
    ] as const) {
      const error = Object.assign(new Error('from the driver'), { errcode: code });
      const mapped = unavailable('view', 'x.db', error) as { code: string; message: string };
      expect(`${mapped.code}: ${mapped.message}`).to.match(words);
    }
    const mistake = new TypeError('not of the driver');
    expect(unavailable('view', 'x.db', mistake)).to.equal(mistake);
  });
});

/** Replaces a closed database by a file with garbage in its second half. */
function damage(file: string): void {
  const content = readFileSync(file);
  for (const ending of ['', '-wal', '-shm']) rmSync(file + ending, { force: true });
  writeFileSync(file, content.fill(0xff, Math.floor(content.length / 2)));
}

function change(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

function select(file: string, sql: string): unknown[] {
  const database = new DatabaseSync(file);
  const rows: unknown[] = database
    .prepare(sql)
    .all()
    .map((row: object) => ({ ...row }));
  database.close();
  return rows;
}

/** Overwrites the first page of a table. */
function overwriteTable(file: string, table: string): void {
  const database = new DatabaseSync(file);
  const sql = 'SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size() WHERE name = ?';
  const { rootpage, page_size } = database.prepare(sql).get(table) as Record<string, number>;
  database.close();
  const content = readFileSync(file);
  content.fill(0xff, ((rootpage ?? 0) - 1) * (page_size ?? 0), (rootpage ?? 0) * (page_size ?? 0));
  writeFileSync(file, content);
}
