import { expect } from 'chai';
import { LogWriter } from '../../../stores/sqlite/event-log/writing/log-writer.ts';
import { logFile, openLogForWriting } from '../../../stores/sqlite/event-log/schema.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe("the embedded log's writer", () => {
  const directory = useTemporaryDirectory();

  it('takes its sequences once it holds the lock, including those that arrived in the meantime', () => {
    const database = openLogForWriting(logFile(directory()), true, undefined);
    const other = openLogForWriting(logFile(directory()), false, undefined);
    try {
      const writer = new LogWriter(database, 0);
      const asked: boolean[] = [];
      const take = (): [] => {
        asked.push(database.isTransaction);
        return [];
      };
      other.exec('BEGIN IMMEDIATE');
      expect(() => writer.write(take)).to.throw('database is locked');
      expect(asked).to.deep.equal([]);
      other.exec('ROLLBACK');
      writer.write(take);
      expect(asked).to.deep.equal([true]);
    } finally {
      other.close();
      database.close();
    }
  });
});
