import { expect } from 'chai';
import { join } from 'node:path';
import { ReaderPool } from '../../../stores/sqlite/read-model/reader-pool.ts';
import type { CompiledQuery } from '../../../stores/sqlite/read-model/query-sql.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the threads that read views', () => {
  const directory = useTemporaryDirectory();
  const query: CompiledQuery = { probe: null, plans: { rare: [], common: [] } };

  it('are as many as the concurrent queries, and start one at a time', async () => {
    const pool = new ReaderPool(3);
    try {
      const missing = join(directory(), 'missing.db');
      const askAll = (count: number): Promise<readonly { readonly kind: string }[]> =>
        Promise.all(Array.from({ length: count }, () => pool.query(1, missing, query)));
      const first = askAll(4);
      expect(pool.threads).to.equal(1);
      expect((await first).map(({ kind }) => kind)).to.deep.equal(Array(4).fill('failed'));
      const second = askAll(4);
      expect(pool.threads).to.equal(2);
      await second;
      await askAll(4);
      await askAll(8);
      expect(pool.threads).to.equal(3);
    } finally {
      await pool.close();
    }
  });

  it('end when idle, except one', async () => {
    const pool = new ReaderPool(2, { idle: 1 });
    try {
      const missing = join(directory(), 'missing.db');
      const ask = (): Promise<{ readonly kind: string }> => pool.query(1, missing, query);
      await ask();
      const both = [ask(), ask()];
      expect(pool.threads).to.equal(2);
      await Promise.all(both);
      await eventually(() => pool.threads === 1);
      expect((await ask()).kind).to.equal('failed');
      expect(pool.threads).to.equal(1);
    } finally {
      await pool.close();
    }
  });

  it('are awaited on closing when they are ending', async () => {
    const pool = new ReaderPool(2, { idle: 0 });
    const missing = join(directory(), 'missing.db');
    await pool.query(1, missing, query);
    const both = [pool.query(1, missing, query), pool.query(1, missing, query)];
    expect(pool.threads).to.equal(2);
    await Promise.all(both);
    await eventually(() => pool.threads === 1);
    await pool.close();
    expect(pool.threads).to.equal(0);
  });
});
