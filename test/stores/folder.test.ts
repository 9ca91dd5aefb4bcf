import { expect } from 'chai';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileNumber } from '../../stores/sqlite/database-file.ts';
import { makeFolder, statIfPresent } from '../../stores/folder.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

// For a path below a file, Node 20 throws, while later versions find nothing.
describe('creating a folder', () => {
  const directory = useTemporaryDirectory();
  const file = (): string => join(directory(), 'file');
  beforeEach(() => writeFileSync(file(), ''));

  it('creates its parents too, for the owner only', () => {
    const path = join(directory(), 'a', 'b', 'c');
    makeFolder(path);
    makeFolder(path);
    expect(statSync(path).mode & 0o777).to.equal(0o700);
    expect(statSync(join(directory(), 'a')).mode & 0o777).to.equal(0o700);
  });

  for (const below of [['data'], ['data', 'more']]) {
    it(`fails with the file system's error below a file: file/${below.join('/')}`, () => {
      const refused = `ENOTDIR: not a directory, mkdir '${join(file(), 'data')}'`;
      expect(() => makeFolder(join(file(), ...below))).to.throw(refused);
    });
  }

  it("fails with the file system's error at the path of a file", () => {
    expect(() => makeFolder(file())).to.throw(`EEXIST: file already exists, mkdir '${file()}'`);
  });

  it('finds nothing below a file', () => {
    const below = join(file(), 'data');
    expect([statIfPresent(below), fileNumber(below), existsSync(below)]).to.deep.equal([
      ...[undefined, undefined, false],
    ]);
  });
});
