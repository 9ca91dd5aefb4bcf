import { expect } from 'chai';
import { openSync, closeSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { faultOf, openDatabase, type Database } from '../../../stores/sqlite/database.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

const ROWS = 5_000;
const PAGE = 4096;

describe('a table that is damaged in its middle', () => {
  const directory = useTemporaryDirectory();
  let database: Database;
  const open = (): Database =>
    openDatabase({
      file: join(directory(), 'things.db'),
      what: 'table',
      version: 1,
      migrate: (empty) => empty.exec('CREATE TABLE things (name TEXT)'),
    });

  beforeEach(() => {
    database = open();
    database.exec(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})
      INSERT INTO things SELECT hex(randomblob(50)) FROM n`);
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
    const file = openSync(join(directory(), 'things.db'), 'r+');
    writeSync(file, Buffer.alloc(20 * PAGE, 0xa5), 0, 20 * PAGE, 10 * PAGE);
    closeSync(file);
    database = open();
  });
  afterEach(() => database.close());

  const ways: Readonly<Record<string, () => unknown>> = {
    get: () => database.prepare("SELECT name FROM things WHERE name = 'none'").get(),
    all: () => database.prepare('SELECT name FROM things').all(),
    iterate: () => [...database.prepare('SELECT name FROM things').iterate()],
    exec: () => database.exec("UPDATE things SET name = 'other'"),
  };
  for (const [way, read] of Object.entries(ways)) {
    it(`is known to be damaged by the error of ${way}`, () => {
      let thrown: unknown = null;
      try {
        read();
      } catch (error) {
        thrown = error;
      }
      expect(faultOf(thrown), String(thrown)).to.equal('corrupt');
    });
  }
});
