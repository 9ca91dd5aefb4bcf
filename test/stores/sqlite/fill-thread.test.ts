import { expect } from 'chai';
import { EventEmitter } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { DatabaseSync } from '@photostructure/sqlite';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import {
  ReadModelError,
  type Projection,
  type ReadModel,
} from '../../../projections/read-model.ts';
import { fileNumber } from '../../../stores/sqlite/database-file.ts';
import { FillingRows } from '../../../stores/sqlite/filling/filling-rows.ts';
import { packBatch, unpackBatch } from '../../../stores/sqlite/filling/packed-batch.ts';
import type { FillOrder } from '../../../stores/sqlite/filling/protocol.ts';
import { RowsInThread, threadFor } from '../../../stores/sqlite/filling/rows-in-thread.ts';
import { openGenerationDatabase } from '../../../stores/sqlite/read-model/generation-database.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { shapeOf, type RowChange } from '../../../stores/sqlite/read-model/view-rows.ts';
import { columnsOf, type Cell } from '../../../stores/sqlite/read-model/view-table.ts';
import {
  at,
  contents,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type Written,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { mountSmallDisk } from '../../process/faults/small-disk.ts';

describe('a thread that fills a view', function () {
  this.timeout(30_000);
  const directory = useTemporaryDirectory();
  const opened: { close(): Promise<void> }[] = [];
  leavesNothingOpen();
  afterEach(async () => {
    for (const each of opened.splice(0).reverse()) await each.close();
  });

  /** Hands all over, unless told otherwise. */
  const open = async (
    options: { documentsHere?: number; telemetry?: Telemetry; directory?: string } = {},
  ): Promise<ReadModel> => {
    const readModel = await openSqliteReadModel({
      ...{ directory: directory(), telemetry: silent, documentsHere: 0 },
      ...options,
    });
    opened.push(readModel);
    return readModel;
  };
  const fileOf = (projection: Projection): string =>
    join(directory(), `${projection.name}-s1-g1.db`);
  const first = (key: string, n: number): Written & { readonly isFirst: true } => ({
    ...thing(key, n, { name: key, amount: n, active: n % 2 === 0, tags: ['x', `t${n % 3}`] }),
    isFirst: true,
  });
  const firsts = (from: number, count: number): readonly Written[] =>
    Array.from({ length: count }, (_, i) => first(`k${from + i}`, from + i));

  describe('is handed batches that', () => {
    const { fields } = thingsProjection();
    const columns = columnsOf({ name: 'things', fields });

    it('come out as they were', () => {
      const texts = ['', 'a', 'ä', '漢字', '🎉', '\ud83d', '\ude00', 'x'.repeat(200)];
      const text = (n: number): string => texts[n % texts.length] ?? '';
      const cells = (n: number): readonly Cell[] =>
        n % 5 === 0
          ? [null, null, null, null, null]
          : [text(n), text(n + 1), [0, -1, 2 ** 53, 0.1, -0][n % 5] ?? 0, n % 2, text(n + 2)];
      const rows = Array.from({ length: 200 }, (_, n): RowChange => {
        const change = { key: text(n + 3), position: text(n + 4), isFirst: n % 3 === 0 };
        return n % 7 === 0
          ? { ...change, text: null, cells: [] }
          : { ...change, text: text(n + 5), cells: cells(n) };
      });
      for (const part of [rows, rows.slice(0, 64), rows.slice(0, 1), []]) {
        const batch = { rows: part, from: 'a', to: 'b' };
        expect(unpackBatch(packBatch(batch, columns), columns)).to.deep.equal(batch);
      }
    });
  });

  it('goes on where the first documents were written, and knows them', async () => {
    const told: Signal<string> = new Signal('what is told of the thread');
    const telemetry = { ...silent, log: { ...silent.log, debug: told.send } };
    const readModel = await open({ documentsHere: 10, telemetry });
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection, { bulk: true });
    await writer.write({ documents: firsts(1, 12), from: BEGINNING, to: at(12) });
    // It is started by a batch, and has the file by one that comes when it is there.
    await writer.write({ documents: firsts(13, 1), from: at(12), to: at(13) });
    expect(await told.wait()).to.include('a thread of its own');
    const changed = thing('k2', 14, { name: 'changed' });
    await writer.write({ documents: [changed], from: at(13), to: at(14) });
    await writer.write({ documents: [thing('k3', 15, null)], from: at(14), to: at(15) });
    // Remembered here, and by the thread.
    expect([...(await writer.load(['k1', 'k2']))]).to.deep.equal([
      ['k1', { position: at(1), document: first('k1', 1).document }],
      ['k2', { position: at(14), document: changed.document }],
    ]);
    await writer.close();
    // None of the rows was looked for by its key.
    expect(indexes(fileOf(projection))).to.deep.equal([]);
    const again = await writerOf(readModel, projection, { bulk: true });
    expect(await again.checkpoint()).to.equal(at(15));
    await again.finish();
    await again.close();
    await readModel.switchTo(projection, 1);
    const kept = await contents(readModel, projection);
    expect([...kept.keys()].sort()).to.deep.equal(
      firsts(1, 13)
        .map(({ key }) => key)
        .filter((key) => key !== 'k3')
        .sort(),
    );
    expect(kept.get('k2')).to.deep.include(changed);
  });

  it('writes what is handed over before it answers what is asked after it', async () => {
    const readModel = await open();
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection, { bulk: true });
    // More than is remembered here.
    const long = 'x'.repeat(60_000);
    const documents = Array.from({ length: 40 }, (_, i) =>
      thing(`k${i + 10}`, i + 1, { name: long }),
    );
    for (const [i, document] of documents.entries()) {
      const from = i === 0 ? BEGINNING : at(i);
      await writer.write({ documents: [{ ...document, isFirst: true }], from, to: at(i + 1) });
    }
    expect(await writer.count()).to.equal(40);
    const loaded = await writer.load(['k10', 'k49', 'none']);
    expect([...loaded.values()].map(({ position }) => position).sort()).to.deep.equal([
      at(1),
      at(40),
    ]);
    expect(await writer.page('k47', 5)).to.deep.equal(documents.slice(38));
    expect(await writer.checkpoint()).to.equal(at(40));
    await writer.finish();
    // From then on each is in the file when it is answered.
    await writer.write({ documents: [thing('z', 41, {})], from: at(40), to: at(41) });
    expect(select(fileOf(projection), 'SELECT count(*) AS n FROM documents')).to.deep.equal([
      { n: 41 },
    ]);
    await writer.close();
  });

  it('is handed no more than it can write soon', async () => {
    const posted: unknown[] = [];
    const answers = new EventEmitter();
    const worker = Object.assign(answers, { postMessage: (call: unknown) => posted.push(call) });
    const projection = thingsProjection();
    const rows = new RowsInThread(orderOf('x.db', projection), silent, worker as unknown as Worker);
    const answer = (result?: string): boolean => answers.emit('message', { kind: 'done', result });
    answers.emit('message', { kind: 'ready' });
    const begun = rows.begin([]);
    answer(BEGINNING);
    await begun;
    const write = (n: number): Promise<void> =>
      rows.write({ rows: [], from: n === 1 ? BEGINNING : at(n - 1), to: at(n) });
    await write(1);
    await write(2);
    let isThrough = false;
    const third = write(3).then(() => (isThrough = true));
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect({ isThrough, posted: posted.length }).to.deep.equal({ isThrough: false, posted: 4 });
    answer();
    await third;
    const closed = rows.close();
    for (let i = 0; i < 3; i += 1) answer();
    answers.emit('exit', 0);
    await closed;
  });

  describe('that fails with what it was handed', () => {
    /** Another writer has been at the file, of which this one is not told. */
    const outrun = async () => {
      const readModel = await open();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection, { bulk: true });
      const other = await writerOf(await open(), projection, { bulk: true, fence: 2 });
      await other.write({ documents: [], from: BEGINNING, to: BEGINNING });
      await other.close();
      await writer.write({ documents: firsts(1, 1), from: BEGINNING, to: at(1) });
      return { readModel, projection, writer };
    };

    it('says so with the next call, and with each from then on', async () => {
      const { readModel, projection, writer } = await outrun();
      await rejectsWith('FENCED', writer.load(['k2']));
      await rejectsWith('FENCED', writer.write({ documents: [], from: at(1), to: at(2) }));
      await rejectsWith('FENCED', writer.finish());
      await rejectsWith('FENCED', writer.checkpoint());
      await writer.close();
      const again = await writerOf(readModel, projection, { bulk: true, fence: 2 });
      expect(await again.checkpoint()).to.equal(BEGINNING);
      await again.close();
      expect(indexes(fileOf(projection))).to.deep.equal([]);
    });

    it('says so at the latest when it is closed', async () => {
      const { writer } = await outrun();
      await rejectsWith('FENCED', writer.close());
    });

    it('leaves nothing of what came behind it, when the disk was full', async function () {
      const disk = mountSmallDisk(directory());
      if (disk === null) this.skip();
      try {
        const readModel = await open();
        const projection = thingsProjection();
        const writer = await writerOf(readModel, projection, { bulk: true });
        await writer.write({ documents: firsts(1, 10), from: BEGINNING, to: at(10) });
        await writer.close();
        const filling = await writerOf(readModel, projection, { bulk: true });
        disk.fill();
        // So many that they are committed at once.
        const many = firsts(11, 50_001);
        await filling.write({ documents: many, from: at(10), to: at(60_000) });
        const error: unknown = await filling
          .write({ documents: firsts(60_001, 1), from: at(60_000), to: at(60_001) })
          .then(() => filling.count())
          .catch((cause: unknown) => cause);
        expect(error).to.be.instanceOf(ReadModelError);
        expect(String(error)).to.include('disk is full');
        await filling.close();
        disk.empty();
        const again = await writerOf(readModel, projection, { bulk: true });
        expect(await again.checkpoint()).to.equal(at(10));
        await again.write({ documents: firsts(11, 1), from: at(10), to: at(11) });
        await again.finish();
        expect(await again.count()).to.equal(11);
        await again.close();
      } finally {
        disk.empty();
        for (const each of opened.splice(0)) await each.close();
        disk.remove();
      }
    });

    it('throws away a file that turns out to be damaged', async () => {
      const readModel = await open();
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection, { bulk: true });
      await writer.write({ documents: firsts(1, 2_000), from: BEGINNING, to: at(2_000) });
      await writer.close();
      damage(fileOf(projection));
      const found = await writerOf(readModel, projection, { bulk: true });
      await found.write({ documents: [thing('k1', 2_001, {})], from: at(2_000), to: at(2_001) });
      await rejectsWith('FENCED', found.count());
      expect(await readModel.generations(projection)).to.deep.equal([]);
      await found.close();
      const anew = await writerOf(readModel, projection, { bulk: true });
      expect(await anew.checkpoint()).to.equal(BEGINNING);
      await anew.close();
    });
  });

  it('that dies leaves what it has committed, and a file that others can write', async () => {
    const readModel = await open();
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection, { bulk: true });
    await writer.write({ documents: firsts(1, 10), from: BEGINNING, to: at(10) });
    await writer.close();
    const warned: Signal<string> = new Signal('what is told of its end');
    const log = { ...silent.log, warn: warned.send };
    const order = orderOf(fileOf(projection), projection);
    const worker = threadFor(order);
    const rows = new RowsInThread(order, { ...silent, log }, worker);
    expect(await rows.started()).to.equal(true);
    await rows.begin([]);
    const batch = (n: number) => ({ rows: [], from: at(n), to: at(n + 1) });
    await rows.write(batch(10));
    // It is in the midst of a transaction.
    expect(await rows.count()).to.equal(10);
    const asked = rows.count();
    await worker.terminate();
    await rejectsWith(
      'UNAVAILABLE',
      asked.then(() => rows.count()),
    );
    await rejectsWith('UNAVAILABLE', rows.write(batch(11)));
    await rows.close();
    const again = await writerOf(readModel, projection, { bulk: true });
    expect(await again.checkpoint()).to.equal(at(10));
    await again.write({ documents: firsts(11, 1), from: at(10), to: at(11) });
    await again.finish();
    expect(await again.count()).to.equal(11);
    await again.close();
  });

  it('that does not start is done without', async () => {
    const projection = thingsProjection();
    await (await writerOf(await open(), projection, { bulk: true })).close();
    const file = fileOf(projection);
    const shape = shapeOf(projection);
    const columns = columnsOf(projection);
    const database = openGenerationDatabase(file, { bulk: true });
    const opened = { shape, columns, file, database, fence: 1, bulk: true };
    let started = 0;
    const rows = new FillingRows(opened, 0, silent, (order) => {
      started += 1;
      const worker = threadFor(order);
      void worker.terminate();
      return worker;
    });
    for (let n = 1; n <= 3; n += 1) {
      const [{ key, position }] = [first(`k${n}`, n)];
      const row = {
        key,
        position,
        text: '{}',
        cells: [null, null, null, null, null],
        isFirst: true,
      };
      await rows.write({ rows: [row], from: n === 1 ? BEGINNING : at(n - 1), to: at(n) });
    }
    await rows.finish();
    expect(await rows.count()).to.equal(3);
    await rows.close();
    expect(started).to.equal(1);
    expect(indexes(file)).to.have.lengthOf(1);
  });
});

function orderOf(file: string, projection: Projection): FillOrder {
  const shape = shapeOf(projection);
  return { shape, columns: columnsOf(projection), file, fileNumber: fileNumber(file), fence: 1 };
}

/** Puts another file, with nonsense in its second half, in the place of a closed database. */
function damage(file: string): void {
  const content = readFileSync(file);
  rmSync(file, { force: true });
  writeFileSync(file, content.fill(0xff, Math.floor(content.length / 2)));
}

function indexes(file: string): unknown[] {
  return select(file, "SELECT name FROM sqlite_schema WHERE name = 'documents_key'");
}

function select(file: string, sql: string): unknown[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const rows: unknown[] = database.prepare(sql).all();
    return rows.map((row) => ({ ...(row as object) }));
  } finally {
    database.close();
  }
}
