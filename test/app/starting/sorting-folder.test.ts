import { expect } from 'chai';
import { watch } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { sortIn } from '../../../app/starting/sorting-folder.ts';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { at, thing, thingsProjection, writerOf } from '../../contracts/read-model-things.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** More than is sorted in memory: 24 MiB. */
const KEYS = 1_500;
const KEY_LENGTH = 16 * 1024;

describe('what is too much to be sorted in memory', function () {
  this.timeout(20_000);
  const directory = useTemporaryDirectory();
  const before = process.env['SQLITE_TMPDIR'];
  afterEach(() => {
    if (before === undefined) delete process.env['SQLITE_TMPDIR'];
    else process.env['SQLITE_TMPDIR'] = before;
  });

  it('is sorted in the service’s folder, and nothing is left there', async () => {
    const folder = join(directory(), 'data');
    await mkdir(folder);
    delete process.env['SQLITE_TMPDIR'];
    sortIn(folder);
    const watcher = watch(folder);
    const seen = new Promise<string>((resolve) => {
      watcher.on('change', (_, name) => {
        resolve(String(name));
      });
    });
    const readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const writer = await writerOf(readModel, thingsProjection(), { bulk: true });
    const documents = Array.from({ length: KEYS }, (_, i) =>
      thing(String(i).padEnd(KEY_LENGTH, '.'), i + 1, {}),
    );
    await writer.write({ documents, from: BEGINNING, to: at(KEYS) });
    await writer.finish();
    expect(await seen).to.match(/^etilqs_/);
    expect(await writer.count()).to.equal(KEYS);
    await writer.close();
    await readModel.close();
    watcher.close();
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it('goes where the environment says already', () => {
    process.env['SQLITE_TMPDIR'] = '/elsewhere';
    sortIn(directory());
    expect(process.env['SQLITE_TMPDIR']).to.equal('/elsewhere');
  });
});
