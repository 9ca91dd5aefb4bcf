import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ArtifactError } from '../../../domain/artifacts/artifact-store.ts';
import { FileArtifacts } from '../../../stores/artifacts/file-artifacts.ts';
import { contentOf, listed, textIn } from '../../contracts/artifact-store.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';

const DAY = 86_400_000;

describe('artifacts in files', () => {
  const run = randomUUID();
  const { name, content } = contentOf('a result');
  let directory: TemporaryDirectory;
  let root: string;

  beforeEach(async () => {
    directory = await makeTemporaryDirectory();
    root = join(directory.path, 'artifacts');
  });

  afterEach(() => directory.remove());

  const unfinished = (): readonly string[] => readdirSync(join(root, '.unfinished'));

  it('creates nothing until there is something to store', async () => {
    const store = new FileArtifacts(directory.path);
    expect(await store.open(run, name)).to.equal(null);
    expect(await listed(store, run)).to.deep.equal([]);
    await store.remove(run, name);
    await store.check();
    expect(readdirSync(directory.path)).to.deep.equal([]);
  });

  it('leaves one file, which only its owner can read', async () => {
    await new FileArtifacts(directory.path).put(run, name, content);
    expect(readdirSync(join(root, run))).to.deep.equal([`${name}.json`]);
    expect(unfinished()).to.deep.equal([]);
    expect(statSync(join(root, run, `${name}.json`)).mode & 0o077).to.equal(0);
    expect(statSync(root).mode & 0o077).to.equal(0);
  });

  it('removes the folder of a run with its last artifact', async () => {
    const store = new FileArtifacts(directory.path);
    await store.put(run, name, content);
    await store.remove(run, name);
    expect(existsSync(join(root, run))).to.equal(false);
  });

  it('does not treat the file of a killed writer as an artifact, and removes it after a day', async () => {
    await new FileArtifacts(directory.path).put(run, name, content);
    const [old, recent] = ['old', 'recent'].map((each) => join(root, '.unfinished', each));
    for (const path of [old, recent]) writeFileSync(path ?? '', 'half of a res');
    const yesterday = (Date.now() - DAY - 60_000) / 1000;
    utimesSync(old ?? '', yesterday, yesterday);
    const next = new FileArtifacts(directory.path);
    expect(await listed(next, run)).to.have.lengthOf(1);
    const another = contentOf('another');
    await next.put(run, another.name, another.content);
    expect(unfinished()).to.deep.equal(['recent']);
  });

  it('ignores other files in its folder', async () => {
    const store = new FileArtifacts(directory.path);
    await store.put(run, name, content);
    mkdirSync(join(root, 'lost+found'));
    writeFileSync(join(root, 'notes.txt'), 'mine');
    writeFileSync(join(root, run, 'notes.json'), '{}');
    expect((await listed(store, run)).map(({ artifact }) => artifact)).to.deep.equal([name]);
  });

  it('says what to do if a file blocks its folder, and works once that file is gone', async () => {
    writeFileSync(root, 'not a folder');
    const store = new FileArtifacts(directory.path);
    const error: unknown = await store.put(run, name, content).then(
      () => null,
      (fault: unknown) => fault,
    );
    expect(error).to.be.an.instanceOf(ArtifactError);
    const { code, message } = error as ArtifactError;
    expect(code).to.equal('UNAVAILABLE');
    expect(message).to.match(/^could not write artifacts in the data directory \(E\w+\): /);
    expect(message).to.not.include(directory.path);
    rmSync(root);
    await store.put(run, name, content);
    expect(await textIn(await store.open(run, name))).to.equal('a result');
  });
});
