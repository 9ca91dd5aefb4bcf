import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc } from '../cli/command-line.ts';
import { addTask, onLog } from './small-log.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');

describe('an archive whose manifest names files outside it', () => {
  const directory = useTemporaryDirectory();
  const path = (name: string): string => join(directory(), name);

  /** A backup whose manifest claims another key file. */
  async function backupWithKey(file: string): Promise<void> {
    await onLog(path('here'), (store) => addTask(store, AT));
    const made = await svc(['backup', path('archives/one')], {
      env: { SVC_DATA_DIR: path('here') },
    });
    expect(made.code, made.err).to.equal(0);
    const bytes = Buffer.from('strange');
    mkdirSync(path('archives'), { recursive: true });
    writeFileSync(join(path('archives/one'), file), bytes);
    const manifestFile = path('archives/one/manifest.json');
    const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as { keys: object[] };
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    manifest.keys.push({ file, bytes: bytes.length, sha256 });
    writeFileSync(manifestFile, JSON.stringify(manifest));
  }

  for (const file of ['../../strange', '..\\strange']) {
    it(`is not restored: ${file}`, async () => {
      mkdirSync(path('data'));
      await backupWithKey(file);
      const restored = await svc(['restore', path('archives/one')], {
        env: { SVC_DATA_DIR: path('data/there') },
      });
      expect(restored.code).to.equal(1);
      expect(restored.err).to.include('manifest.json is not a manifest');
      expect(readdirSync(path('data'))).to.deep.equal([]);
    });
  }
});
