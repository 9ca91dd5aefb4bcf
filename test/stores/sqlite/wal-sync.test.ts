import { join } from 'node:path';
import { expect } from 'chai';
import { openDatabase, type Database } from '../../../stores/sqlite/database.ts';
import { WalSync } from '../../../stores/sqlite/read-model/wal-sync.ts';
import { deferred, type Deferred } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe("the syncing of a view's WAL", () => {
  const directory = useTemporaryDirectory();
  let database: Database;
  beforeEach(() => {
    const migrate = (made: Database): void => made.exec('CREATE TABLE texts (text TEXT)');
    const file = join(directory(), 'view.db');
    database = openDatabase({ file, what: 'view', version: 1, migrate, create: true, walMiB: 0 });
    database.exec('PRAGMA wal_checkpoint(RESTART)');
  });
  afterEach(() => database.close());

  /** Commits about so many pages. */
  const commit = (pages: number): void =>
    database.exec(`INSERT INTO texts VALUES ('${'x'.repeat(pages * 4096)}')`);

  /** One that is told when a part is on the disk. */
  function held() {
    const begun: Deferred<void>[] = [];
    const sync = new WalSync(database, join(directory(), 'view.db-wal'), () => {
      const part = deferred();
      begun.push(part);
      return part.promise;
    });
    return { sync, begun };
  }

  it('begins once a megabyte has come, and with the next when that is on the disk', async () => {
    const { sync, begun } = held();
    commit(200);
    sync.look();
    expect(begun).to.have.lengthOf(0);
    commit(100);
    sync.look();
    expect(begun).to.have.lengthOf(1);
    commit(300);
    sync.look();
    expect(begun).to.have.lengthOf(1);
    begun[0]?.resolve();
    await sync.settled();
    sync.look();
    expect(begun).to.have.lengthOf(2);
    begun[1]?.resolve();
    await sync.settled();
    sync.look();
    expect(begun).to.have.lengthOf(2);
  });

  it('counts from its beginning where the WAL has begun anew', async () => {
    const { sync, begun } = held();
    commit(1000);
    sync.look();
    begun[0]?.resolve();
    await sync.settled();
    database.exec('PRAGMA wal_checkpoint(RESTART)');
    commit(200);
    sync.look();
    expect(begun).to.have.lengthOf(1);
    commit(100);
    sync.look();
    expect(begun).to.have.lengthOf(2);
    begun[1]?.resolve();
  });

  it('tells of a disk that refuses, with the next look and once', async () => {
    const { sync, begun } = held();
    commit(300);
    sync.look();
    begun[0]?.reject(new Error('EIO: i/o error, fdatasync'));
    await sync.settled();
    commit(300);
    expect(() => sync.look()).to.throw('EIO');
    sync.look();
    expect(begun).to.have.lengthOf(2);
    begun[1]?.resolve();
  });

  it('has a file synced', async () => {
    const sync = new WalSync(database, join(directory(), 'view.db-wal'));
    commit(300);
    sync.look();
    await sync.settled();
    sync.look();
    const gone = new WalSync(database, join(directory(), 'none'));
    gone.look();
    await gone.settled();
    expect(() => gone.look()).to.throw('ENOENT');
  });
});
