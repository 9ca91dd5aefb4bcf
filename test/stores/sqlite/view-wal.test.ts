import { join } from 'node:path';
import { expect } from 'chai';
import { openDatabase, prepareForArrays, type Database } from '../../../stores/sqlite/database.ts';
import { ViewWal } from '../../../stores/sqlite/read-model/view-wal.ts';
import { deferred, type Deferred } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the WAL of a view', () => {
  const directory = useTemporaryDirectory();
  let database: Database;
  beforeEach(() => {
    const migrate = (made: Database): void => made.exec('CREATE TABLE texts (text TEXT)');
    const file = join(directory(), 'view.db');
    database = openDatabase({ file, what: 'view', version: 1, migrate, create: true, walMiB: 0 });
    database.exec('PRAGMA wal_checkpoint(RESTART)');
  });
  afterEach(() => database.close());

  /** Commits about this many pages. */
  const commit = (pages: number): void =>
    database.exec(`INSERT INTO texts VALUES ('${'x'.repeat(pages * 4096)}')`);

  /** A WAL whose syncs the test completes. */
  function held() {
    const begun: Deferred<void>[] = [];
    const wal = new ViewWal(database, join(directory(), 'view.db-wal'), () => {
      const part = deferred();
      begun.push(part);
      return part.promise;
    });
    /** Completes the last sync. */
    const arrive = async (): Promise<void> => {
      begun.at(-1)?.resolve();
      await wal.settled();
    };
    return { wal, begun, arrive };
  }

  it('is synced in parts, one after the other', async () => {
    const { wal, begun, arrive } = held();
    commit(200);
    wal.sync();
    expect(begun).to.have.lengthOf(0);
    commit(100);
    wal.sync();
    expect(begun).to.have.lengthOf(1);
    commit(300);
    wal.sync();
    expect(begun).to.have.lengthOf(1);
    await arrive();
    wal.sync();
    expect(begun).to.have.lengthOf(2);
    await arrive();
    wal.sync();
    expect(begun).to.have.lengthOf(2);
  });

  it('is checkpointed sooner when the file is small', async () => {
    const { wal, arrive } = held();
    // The PRAGMA's value is read when the statement is prepared.
    const limit = () => prepareForArrays(database, 'PRAGMA wal_autocheckpoint').get()?.[0];
    const limits: number[] = [];
    for (const pages of [300, 1000, 4000]) {
      commit(pages);
      wal.sync();
      limits.push(Number(limit()));
      await arrive();
    }
    const [small, larger, largest] = limits;
    expect(small).to.be.within(4 * 300, 4 * 310);
    expect(larger).to.be.within(4 * 1300, 4 * 1320);
    expect(largest).to.equal(8192);
  });

  it('counts from the beginning when the WAL has restarted', async () => {
    const { wal, begun, arrive } = held();
    commit(1000);
    wal.sync();
    await arrive();
    database.exec('PRAGMA wal_checkpoint(RESTART)');
    commit(200);
    wal.sync();
    expect(begun).to.have.lengthOf(1);
    commit(100);
    wal.sync();
    expect(begun).to.have.lengthOf(2);
    await arrive();
  });

  it('reports a failing disk once, at the next call', async () => {
    const { wal, begun, arrive } = held();
    commit(300);
    wal.sync();
    begun[0]?.reject(new Error('EIO: i/o error, fdatasync'));
    await wal.settled();
    commit(300);
    expect(() => wal.sync()).to.throw('EIO');
    wal.sync();
    expect(begun).to.have.lengthOf(2);
    await arrive();
  });

  it('is synced, and a missing file is reported at the next call', async () => {
    const wal = new ViewWal(database, join(directory(), 'view.db-wal'));
    commit(300);
    wal.sync();
    await wal.settled();
    wal.sync();
    const gone = new ViewWal(database, join(directory(), 'none'));
    gone.sync();
    await gone.settled();
    expect(() => gone.sync()).to.throw('ENOENT');
  });
});
