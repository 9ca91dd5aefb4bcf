import { expect } from 'chai';
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { silent } from '../../../observability/telemetry.ts';
import type { Query, ReadModel } from '../../../projections/read-model.ts';
import { ReaderPool } from '../../../stores/sqlite/read-model/reader-pool.ts';
import { SqliteReadModel } from '../../../stores/sqlite/read-model/sqlite-read-model.ts';
import { ViewFiles } from '../../../stores/sqlite/read-model/view-files.ts';
import { at, thing, thingsProjection, writerOf } from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('an embedded view that the disk does not give', () => {
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
    readModel = new SqliteReadModel({ files, pool, telemetry: silent });
    const writer = await writerOf(readModel, projection);
    const documents = Array.from({ length: 500 }, (_, i) =>
      thing(`k${i}`, 1, { name: `name ${i}`, about: 'x'.repeat(2_000) }),
    );
    await writer.write({ documents, from: '', to: at(1) });
    await readModel.switchTo(projection, 1);
    // So that there is a thread, which has nothing of the rest in memory.
    expect(await readModel.count(projection, [{ field: 'name', op: 'eq', value: 'x' }])).to.equal(
      0,
    );
    // What was written is no longer where it is looked for, as with a disk that fails.
    const { name, schema } = projection;
    truncateSync(join(directory(), `${name}-s${schema}-g1.db-wal`), 0);
  });

  it('says so to who asks for a list', async () => {
    const error: unknown = await readModel.find(projection, all).catch((e: unknown) => e);
    expect(error).to.include({ code: 'UNAVAILABLE' });
    expect(String(error)).to.contain('disk I/O error');
    await readModel.close().catch(() => undefined);
  });

  it('leaves nothing open when all is closed, and says what was wrong', async () => {
    const error: unknown = await readModel.close().catch((e: unknown) => e);
    expect(error).to.include({ code: 'UNAVAILABLE' });
    expect(String(error)).to.contain('disk I/O error');
    expect(pool.threads).to.equal(0);
    expect(() => files.ping()).to.throw();
  });
});
