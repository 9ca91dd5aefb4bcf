import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { watch } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { useSqliteTempFolder } from '../../../app/starting/sqlite-temp-folder.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

const script = new URL('sorting-process.ts', import.meta.url).pathname;

describe('data too large to sort in memory', () => {
  const directory = useTemporaryDirectory();
  const before = process.env['SQLITE_TMPDIR'];
  afterEach(() => {
    if (before === undefined) delete process.env['SQLITE_TMPDIR'];
    else process.env['SQLITE_TMPDIR'] = before;
  });

  it('is sorted in the service’s folder, which stays clean', async () => {
    const folder = join(directory(), 'data');
    await mkdir(folder);
    const names: string[] = [];
    const watcher = watch(folder, (_, name) => names.push(String(name)));
    const { SQLITE_TMPDIR: _, ...env } = process.env;
    const args = ['--import', 'tsx/esm', script, directory(), folder];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    watcher.close();
    expect(stdout).to.equal('1500');
    expect(names.length).to.be.greaterThan(0);
    for (const name of names) expect(name).to.match(/^etilqs_/);
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it('is sorted in the folder that the environment names', () => {
    process.env['SQLITE_TMPDIR'] = '/elsewhere';
    useSqliteTempFolder(directory());
    expect(process.env['SQLITE_TMPDIR']).to.equal('/elsewhere');
  });
});
