import { expect } from 'chai';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeBackup } from '../../../app/archive/make-archive.ts';
import { restore } from '../../../app/archive/restore.ts';
import { SystemClock } from '../../../app/clock.ts';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { startService } from '../../../app/service.ts';
import { rejectUnfinishedRestore } from '../../../app/starting/unfinished-restore.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { addTask, onLog } from '../archive/small-log.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');

describe('a folder with a restore', () => {
  const directory = useTemporaryDirectory();
  const path = (name: string): string => join(directory(), name);
  const there = () => ({
    dataDirectory: path('there'),
    eventStoreUrl: undefined,
    readModelUrl: undefined,
  });
  const clock = new SystemClock();

  it('allows a start before and after the restore, but not during it', async () => {
    await onLog(path('here'), (store) => addTask(store, AT));
    const progress = { stage: () => {}, move: () => {}, signal: new AbortController().signal };
    const here = { dataDirectory: path('here'), eventStoreUrl: undefined };
    const target = path('backup');
    await makeBackup({ place: here, target, clock, progress, release: '1.2.3' });
    rejectUnfinishedRestore(there());
    const filling = { archive: target, place: there(), clock, progress, reason: undefined };
    const { found } = await restore(filling, async () => {
      expect(() => rejectUnfinishedRestore(there())).to.throw('is running or was interrupted');
      return 'looked';
    });
    expect(found).to.equal('looked');
    rejectUnfinishedRestore(there());
  });

  const startThere = async (): Promise<string> => {
    const configuration = readConfiguration({ SVC_DATA_DIR: path('there'), SVC_PORT: '0' });
    return startService({
      configuration,
      clock,
      telemetry: createTelemetry({ level: 'silent' }),
      env: {},
    }).then(
      async (service) => {
        await service.stop();
        return 'not refused';
      },
      (error: unknown) => String(error),
    );
  };

  it('is not changed by a start after a killed restore', async () => {
    mkdirSync(path('there/.restoring.unfinished-1-abcdef'), { recursive: true });
    const refused = await startThere();
    expect(refused).to.include('run svc restore again');
    expect(refused).to.include(path('there/.restoring.unfinished-1-abcdef'));
    expect(readdirSync(path('there'))).to.deep.equal(['.restoring.unfinished-1-abcdef']);
  });

  it('is not checked if it is a file, because its setting is rejected', async () => {
    writeFileSync(path('there'), '');
    expect(await startThere()).to.include(`SVC_DATA_DIR: ${path('there')} can't be made`);
  });
});
