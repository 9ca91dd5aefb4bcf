import { expect } from 'chai';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { at, thing, thingsProjection, writerOf } from '../../contracts/read-model-things.ts';
import { projectRoot } from '../../support/project-root.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

const BATCH = 5_000;

describe('a process that is killed while a thread of it fills a view', function () {
  this.timeout(60_000);
  const directory = useTemporaryDirectory();

  /** @returns how many documents were handed over, of those that it told of */
  async function killedAfter(documents: number, name: string): Promise<number> {
    const script = join(projectRoot, 'test/process/killing/filling-child.ts');
    const child = fork(script, [directory(), name, String(BATCH)], {
      execArgv: ['--import', 'tsx'],
    });
    let told = 0;
    child.on('message', (written) => {
      told = Number(written);
      if (told >= documents) child.kill('SIGKILL');
    });
    const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
    expect(signal).to.equal('SIGKILL');
    return told;
  }

  it('leaves a file that goes on from its last commit, and has all up to there and nothing else', async () => {
    const projection = thingsProjection();
    const { name } = projection;
    // Once before anything is committed, once behind the first commit, and once more from there.
    let before = 0;
    for (const documents of [15_000, 65_000, 125_000]) {
      const told = await killedAfter(documents, name);
      const database = new DatabaseSync(join(directory(), `${name}-s1-g1.db`));
      const [{ position }, { found, last }, check] = [
        database.prepare('SELECT position FROM checkpoint').get() as { position: string },
        database
          .prepare('SELECT count(*) AS found, max(position) AS last FROM documents')
          .get() as { found: number; last: string | null },
        database.prepare('PRAGMA integrity_check').get(),
      ];
      database.close();
      expect({ ...(check as object) }).to.deep.equal({ integrity_check: 'ok' });
      expect({ found, last: last ?? '' }).to.deep.equal({
        found: Number(position),
        last: position,
      });
      expect(found).to.be.within(before, told + BATCH);
      expect(found).to.be.at.least(documents - 60_000);
      before = found;
    }
    const readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const writer = await writerOf(readModel, projection, { bulk: true });
    expect(await writer.checkpoint()).to.equal(at(before));
    const more = { ...thing('z', before + 1, {}), isFirst: true };
    await writer.write({ documents: [more], from: at(before), to: at(before + 1) });
    await writer.finish();
    expect(await writer.count()).to.equal(before + 1);
    await readModel.close();
  });
});
