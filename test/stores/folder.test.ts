import { expect } from 'chai';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileNumber } from '../../stores/sqlite/database-file.ts';
import { makeFolder, statIfPresent } from '../../stores/folder.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

// Versions of Node differ below a file: 20 throws, later ones find nothing.
describe('a folder that is to be made', () => {
  const directory = useTemporaryDirectory();
  const file = (): string => join(directory(), 'file');
  beforeEach(() => writeFileSync(file(), ''));

  it('is made with those above it, for the owner alone', () => {
    const path = join(directory(), 'a', 'b', 'c');
    makeFolder(path);
    makeFolder(path);
    expect(statSync(path).mode & 0o777).to.equal(0o700);
    expect(statSync(join(directory(), 'a')).mode & 0o777).to.equal(0o700);
  });

  for (const below of [['data'], ['data', 'more']]) {
    it(`is refused in the file system's words below a file: file/${below.join('/')}`, () => {
      const refused = `ENOTDIR: not a directory, mkdir '${join(file(), 'data')}'`;
      expect(() => makeFolder(join(file(), ...below))).to.throw(refused);
    });
  }

  it("is refused in the file system's words at the place of a file", () => {
    expect(() => makeFolder(file())).to.throw(`EEXIST: file already exists, mkdir '${file()}'`);
  });

  it('is not there below a file, whatever is asked of it', () => {
    const below = join(file(), 'data');
    expect([statIfPresent(below), fileNumber(below), existsSync(below)]).to.deep.equal([
      ...[undefined, undefined, false],
    ]);
  });
});
