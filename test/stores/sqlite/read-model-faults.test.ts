import { expect } from 'chai';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { silent } from '../../../observability/telemetry.ts';
import type { Query, ReadModel } from '../../../projections/read-model.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { ReaderPool } from '../../../stores/sqlite/read-model/reader-pool.ts';
import { SqliteReadModel } from '../../../stores/sqlite/read-model/sqlite-read-model.ts';
import { ViewFiles } from '../../../stores/sqlite/read-model/view-files.ts';
import {
  at,
  fill,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('an embedded view on a failing disk', () => {
  const directory = useTemporaryDirectory();
  const projection = thingsProjection();
  const all: Query = { filters: [], sort: [], limit: 1_000 };
  let pool: ReaderPool;
  let files: ViewFiles;
  let readModel: ReadModel;
  leavesNothingOpen();

  beforeEach(async () => {
    pool = new ReaderPool(1);
    files = new ViewFiles(directory(), silent);
    readModel = new SqliteReadModel({ files, pool, lists: pool, telemetry: silent });
    const writer = await writerOf(readModel, projection);
    const documents = Array.from({ length: 500 }, (_, i) =>
      thing(`k${i}`, 1, { name: `name ${i}`, about: 'x'.repeat(2_000) }),
    );
    await writer.write({ documents, from: '', to: at(1) });
    await readModel.switchTo(projection, 1);
    // Starts a thread, which has none of the later pages in memory.
    expect(await readModel.count(projection, [{ field: 'name', op: 'eq', value: 'x' }])).to.equal(
      0,
    );
    // The pages are missing, as on a failing disk.
    const { name, schema } = projection;
    truncateSync(join(directory(), `${name}-s${schema}-g1.db-wal`), 0);
  });

  it('reports the failure to the reader of a list', async () => {
    const error: unknown = await readModel.find(projection, all).catch((e: unknown) => e);
    expect(error).to.include({ code: 'UNAVAILABLE' });
    expect(String(error)).to.contain('disk I/O error');
    await readModel.close().catch(() => undefined);
  });

  it('leaves nothing open when it is closed, and reports the failure', async () => {
    const error: unknown = await readModel.close().catch((e: unknown) => e);
    expect(error).to.include({ code: 'UNAVAILABLE' });
    expect(String(error)).to.contain('disk I/O error');
    expect(pool.threads).to.equal(0);
    expect(() => files.ping()).to.throw();
  });
});

describe('an embedded view that is damaged', () => {
  const directory = useTemporaryDirectory();
  const projection = thingsProjection();
  leavesNothingOpen();

  it('cannot be read while another process keeps it from being deleted', async () => {
    const { name, schema } = projection;
    const file = join(directory(), `${name}-s${schema}-g1.db`);
    const open = (): Promise<ReadModel> =>
      openSqliteReadModel({ directory: directory(), telemetry: silent });
    const before = await open();
    const documents = Array.from({ length: 500 }, (_, i) => {
      return thing(`k${i}`, 1, { about: 'x'.repeat(2_000) });
    });
    await fill(before, projection, documents);
    await before.close();
    const content = readFileSync(file);
    writeFileSync(file, content.fill(0xff, 20 * 8_192));
    const readModel = await open();
    const other = new DatabaseSync(join(directory(), 'views.db'));
    const all: Query = { filters: [], sort: [], limit: 1_000 };
    other.exec('BEGIN IMMEDIATE');
    await rejectsWith('UNAVAILABLE', readModel.find(projection, all));
    other.exec('ROLLBACK');
    await rejectsWith('NO_VIEW', readModel.find(projection, all));
    other.close();
    await readModel.close();
  });
});
