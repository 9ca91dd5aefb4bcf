import { expect } from 'chai';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { pragma } from '../../../stores/sqlite/database.ts';
import { DocumentTable } from '../../../stores/sqlite/read-model/document-table.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { ViewFiles } from '../../../stores/sqlite/read-model/view-files.ts';
import {
  openGeneration,
  type OpenGeneration,
} from '../../../stores/sqlite/read-model/view-generation.ts';
import { PAGE_CACHE_MIB } from '../../../stores/sqlite/read-model/view-table.ts';
import { finishFilling } from '../../../stores/sqlite/read-model/filling/finish-filling.ts';
import {
  at,
  keysOf,
  thing,
  thingsProjection,
  writerOf,
  type Written,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a generation that is being filled', () => {
  const directory = useTemporaryDirectory();
  let readModel: ReadModel;
  beforeEach(async () => {
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
  });
  afterEach(() => readModel.close());
  leavesNothingOpen();

  it('has a rollback journal until it is finished, even when resumed, and then a WAL', async () => {
    const projection = thingsProjection();
    const file = join(directory(), `${projection.name}-s1-g1.db`);
    const first = await writerOf(readModel, projection, { bulk: true });
    await first.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await first.close();
    expect(journalOf(file)).to.equal('delete');
    const writer = await writerOf(readModel, projection, { bulk: true });
    expect(await writer.checkpoint()).to.equal(at(1));
    await writer.write({ documents: [thing('b', 2, {})], from: at(1), to: at(2) });
    await writer.finish();
    await writer.close();
    expect(journalOf(file)).to.equal('wal');
    // A generation is reopened like this if its process died before it went live.
    const again = await writerOf(readModel, projection, { bulk: true });
    expect(await again.checkpoint()).to.equal(at(2));
    await again.close();
    expect(journalOf(file)).to.equal('wal');
    await readModel.switchTo(projection, 1);
    expect(await keysOf(readModel, projection, {})).to.deep.equal(['a', 'b']);
  });

  it('gets its WAL from a writer that resumes it without bulk', async () => {
    const projection = thingsProjection();
    const file = join(directory(), `${projection.name}-s1-g1.db`);
    const bulk = await writerOf(readModel, projection, { bulk: true });
    await bulk.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await bulk.close();
    const writer = await writerOf(readModel, projection);
    expect(await writer.checkpoint()).to.equal(at(1));
    await writer.close();
    expect(journalOf(file)).to.equal('wal');
  });

  it('has a large page cache only while it adds documents with an index over the keys', () => {
    const projection = thingsProjection();
    const files = new ViewFiles(directory(), silent);
    const options = { generation: 1, fence: 1, bulk: true };
    const kept: number[] = [];
    const look = ({ database }: OpenGeneration): void => {
      kept.push(-pragma(database, 'cache_size') / 1024);
    };
    const fill = openGeneration(files, silent, projection, options);
    look(fill);
    new DocumentTable(fill.database, projection, fill.columns, true).load(['unknown']);
    look(fill);
    fill.database.close();
    const goesOn = openGeneration(files, silent, projection, options);
    look(goesOn);
    finishFilling(goesOn.database, projection, goesOn.columns);
    look(goesOn);
    goesOn.database.close();
    // As if the process had died before the generation went live.
    const again = openGeneration(files, silent, projection, options);
    look(again);
    again.database.close();
    files.close();
    const { usual, fillingByKeys } = PAGE_CACHE_MIB;
    expect(kept).to.deep.equal([usual, fillingByKeys, fillingByKeys, usual, usual]);
  });

  describe('by a writer that knows first documents', () => {
    const first = (key: string, n: number): Written & { readonly isFirst: true } => ({
      ...thing(key, n, { name: String(n) }),
      isFirst: true,
    });

    it('has no index over its keys until it is finished', async () => {
      const projection = thingsProjection();
      const file = join(directory(), `${projection.name}-s1-g1.db`);
      const writer = await writerOf(readModel, projection, { bulk: true });
      const documents = [first('b', 1), first('a', 2)];
      await writer.write({ documents, from: BEGINNING, to: at(2) });
      // The key is remembered, so nothing is looked up.
      await writer.write({ documents: [thing('b', 3, { name: 'z' })], from: at(2), to: at(3) });
      await writer.close();
      expect(isKeyed(file)).to.equal(false);
      const again = await writerOf(readModel, projection, { bulk: true });
      const more = [first('c', 4), { ...first('d', 5), document: null }];
      await again.write({ documents: more, from: at(3), to: at(5) });
      await again.finish();
      await again.close();
      expect(isKeyed(file)).to.equal(true);
      await readModel.switchTo(projection, 1);
      expect(await keysOf(readModel, projection, {})).to.deep.equal(['a', 'b', 'c']);
      expect((await readModel.get(projection, 'b'))?.document).to.deep.include({ name: 'z' });
    });

    it('adds many rows at once, and changes each from memory', async () => {
      const projection = thingsProjection();
      const file = join(directory(), `${projection.name}-s1-g1.db`);
      const writer = await writerOf(readModel, projection, { bulk: true });
      const keys = Array.from({ length: 37 }, (_, i) => `k${i + 10}`);
      const documents = keys.map((key, i) => first(key, i + 1));
      await writer.write({ documents, from: BEGINNING, to: at(37) });
      // There are more first documents than are remembered. Changing them must not need a lookup either.
      const long = 'x'.repeat(60_000);
      const more = Array.from({ length: 20 }, (_, i) => {
        return { ...thing(`l${i + 10}`, 41 + i, { name: long }), isFirst: true };
      });
      const changed = [thing('k10', 61, { name: 'a' }), thing('k25', 62, { name: 'b' })];
      const rest = [...more, ...changed, thing('k46', 63, null)];
      await writer.write({ documents: rest, from: at(37), to: at(63) });
      await writer.close();
      expect(isKeyed(file)).to.equal(false);
      const again = await writerOf(readModel, projection, { bulk: true });
      await again.finish();
      const kept = await again.page(null, 100);
      await again.close();
      const expected = [
        ...keys.slice(0, -1).map((key, i) => {
          if (key === 'k10') return [key, at(61), 'a'];
          return key === 'k25' ? [key, at(62), 'b'] : [key, at(i + 1), String(i + 1)];
        }),
        ...more.map(({ key, position }) => [key, position, long]),
      ];
      const found = kept.map(({ key, position, document }) => [key, position, document['name']]);
      expect(found).to.deep.equal(expected);
    });

    it('has an index over its keys as soon as a forgotten key is looked up', async () => {
      const projection = thingsProjection();
      const file = join(directory(), `${projection.name}-s1-g1.db`);
      const before = await writerOf(readModel, projection, { bulk: true });
      await before.write({ documents: [first('a', 1)], from: BEGINNING, to: at(1) });
      await before.close();
      const writer = await writerOf(readModel, projection, { bulk: true });
      expect((await writer.load(['a', 'b'])).size).to.equal(1);
      const documents = [thing('a', 2, { name: 'z' }), first('b', 3), thing('c', 4, {})];
      await writer.write({ documents, from: at(1), to: at(4) });
      await writer.close();
      expect(isKeyed(file)).to.equal(true);
      const last = await writerOf(readModel, projection, { bulk: true });
      await last.write({ documents: [thing('c', 5, null)], from: at(4), to: at(5) });
      await last.finish();
      expect(await last.count()).to.equal(2);
      await last.close();
    });
  });
});

function isKeyed(file: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return (
      database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'documents_key'").get() !==
      undefined
    );
  } finally {
    database.close();
  }
}

/** The mode that another connection sees. A mode other than WAL is not stored, and is shown as the default. */
function journalOf(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const row = database.prepare('PRAGMA journal_mode').get() as { readonly journal_mode: string };
    return row.journal_mode;
  } finally {
    database.close();
  }
}
