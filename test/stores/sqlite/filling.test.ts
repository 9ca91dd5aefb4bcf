import { expect } from 'chai';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import {
  at,
  keysOf,
  thing,
  thingsProjection,
  writerOf,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a generation that is being filled', function () {
  this.timeout(20_000);
  const directory = useTemporaryDirectory();
  let readModel: ReadModel;
  beforeEach(async () => {
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
  });
  afterEach(() => readModel.close());
  leavesNothingOpen();

  it('has a rollback journal until it is finished, goes on with it, and then has its WAL', async () => {
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
    // It may be opened so again where a process died before the switch.
    const again = await writerOf(readModel, projection, { bulk: true });
    expect(await again.checkpoint()).to.equal(at(2));
    await again.close();
    expect(journalOf(file)).to.equal('wal');
    await readModel.switchTo(projection, 1);
    expect(await keysOf(readModel, projection, {})).to.deep.equal(['a', 'b']);
  });

  it('gets its WAL from a writer that goes on with it not in bulk', async () => {
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
});

/** As another connection finds it: what is no WAL is kept in memory alone, and told as the default. */
function journalOf(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const row = database.prepare('PRAGMA journal_mode').get() as { readonly journal_mode: string };
    return row.journal_mode;
  } finally {
    database.close();
  }
}
