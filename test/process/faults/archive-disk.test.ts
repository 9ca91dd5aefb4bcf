import { expect } from 'chai';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addRuns, addTask, manifestIn, onLog, sha256Of } from '../../app/archive/small-log.ts';
import { svc, type Called } from '../../app/cli/command-line.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { damagedFiles } from './damaged-files.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');

describe('an archive on a full disk', function () {
  this.timeout(180_000);
  let disk: SmallDisk | null = null;
  afterEach(() => {
    disk?.remove();
    disk = null;
  });
  const directory = useTemporaryDirectory();
  const path = (...names: string[]): string => join(directory(), ...names);

  /** A log, its archives, and a small disk. */
  beforeEach(async function () {
    mkdirSync(path('disk'));
    disk = mountSmallDisk(this, path('disk'));
    await onLog(path('here'), async (store) => {
      const task = await addTask(store, AT);
      await addRuns(store, task, AT, 100);
    });
  });

  const on = (data: string, ...words: string[]): Promise<Called> =>
    svc(words, { env: { SVC_DATA_DIR: data } });
  const done = async (called: Promise<Called>): Promise<void> => {
    const ended = await called;
    expect(ended.code, ended.err).to.equal(0);
  };
  const refused = async (called: Promise<Called>): Promise<string> => {
    const { code, err } = await called;
    expect(code, err).to.be.oneOf([1, 6]);
    expect(err).to.match(/full|no space/i);
    return err;
  };

  /** Fills the disk so far that it becomes full during an archive. */
  const fillNearly = (): void => {
    const reserve = path('disk', 'reserve');
    writeFileSync(reserve, Buffer.alloc(96 * 1024));
    disk?.fill();
    rmSync(reserve);
  };

  it('leaves no partial backup or export, and is written when there is space', async () => {
    fillNearly();
    const before = sha256Of(path('here', 'events.sqlite'));
    for (const verb of ['backup', 'export']) {
      await refused(on(path('here'), verb, path('disk', verb)));
      expect(readdirSync(path('disk'))).to.deep.equal(['filler']);
    }
    const file = path('disk', 'rows.ndjson');
    await refused(on(path('here'), 'export', '--format', 'ndjson', '--output', file));
    expect(readdirSync(path('disk'))).to.deep.equal(['filler']);
    expect(sha256Of(path('here', 'events.sqlite'))).to.equal(before);
    disk?.empty();
    await done(on(path('here'), 'backup', path('disk', 'backup')));
    await done(on(path('here'), 'export', path('disk', 'export')));
    await done(on(path('there'), 'restore', path('disk', 'backup')));
  });

  it('leaves no log of a restore, and resumes an import when there is space', async () => {
    await done(on(path('here'), 'backup', path('backup')));
    await done(on(path('here'), 'export', path('export')));
    for (const name of ['restored', 'imported']) mkdirSync(path('disk', name));
    fillNearly();
    const refusal = await refused(on(path('disk', 'restored'), 'restore', path('backup')));
    expect(refusal).to.include(`the disk is full for ${path('disk', 'restored')}`);
    expect(readdirSync(path('disk', 'restored'))).to.deep.equal([]);
    await refused(on(path('disk', 'imported'), 'import', path('export')));
    disk?.empty();
    await done(on(path('disk', 'restored'), 'restore', path('backup')));
    await done(on(path('disk', 'imported'), 'import', path('export')));
    await done(on(path('disk', 'imported'), 'export', path('again')));
    const content = manifestIn(path('export')).content_sha256;
    expect(manifestIn(path('again')).content_sha256).to.equal(content);
    expect(damagedFiles(path('disk', 'imported'))).to.deep.equal([]);
  });
});
