import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ArchiveError } from '../../../app/archive/archive-error.ts';
import { makeBackup } from '../../../app/archive/make-archive.ts';
import { restore } from '../../../app/archive/restore.ts';
import { SystemClock } from '../../../app/clock.ts';
import { withoutHardLinks } from '../../support/hard-links.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { addTask, onLog } from './small-log.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');

describe('a backup that is restored twice concurrently', () => {
  const directory = useTemporaryDirectory();
  const path = (name: string): string => join(directory(), name);
  const clock = new SystemClock();
  const progress = { stage: () => {}, move: () => {}, signal: new AbortController().signal };

  async function backUp(): Promise<void> {
    await onLog(path('here'), (store) => addTask(store, AT));
    const place = { dataDirectory: path('here'), eventStoreUrl: undefined };
    await makeBackup({ place, target: path('backup'), clock, progress, release: '1.2.3' });
  }

  /** @param look called before the log is moved to its place */
  const restored = (look: (folder: string) => Promise<void>): Promise<string> =>
    restore(
      {
        archive: path('backup'),
        clock,
        progress,
        reason: undefined,
        place: { dataDirectory: path('there'), eventStoreUrl: undefined },
      },
      ({ dataDirectory }) => look(dataDirectory),
    ).then(
      () => 'restored',
      ({ kind, message }: ArchiveError) => `${kind}: ${message}`,
    );
  const refused = () => `refused: another process filled ${path('there')} meanwhile`;

  it('is restored by the process that finishes first, and refused to the other', async () => {
    await backUp();
    const ends: string[] = [];
    const first = await restored(async () => {
      ends.push(await restored(async () => {}));
    });
    expect([...ends, first]).to.deep.equal(['restored', refused()]);
    expect(readdirSync(path('there'))).to.deep.equal(['events.sqlite']);
  });

  it('is not replaced by a log that the other process is still filling', async () => {
    await backUp();
    const firstEnded = new Signal<true>('the end of the first restore');
    let second = Promise.resolve('');
    const first = await restored(
      (ofFirst) =>
        new Promise((begun) => {
          second = restored(async (ofSecond) => {
            expect(ofSecond).to.not.equal(ofFirst);
            begun();
            await firstEnded.wait();
          });
        }),
    );
    firstEnded.send(true);
    expect([first, await second]).to.deep.equal(['restored', refused()]);
    expect(readdirSync(path('there'))).to.deep.equal(['events.sqlite']);
  });

  it('is restored once on a file system without hard links too', async () => {
    await backUp();
    await withoutHardLinks(async () => {
      const ends: string[] = [];
      const first = await restored(async () => {
        ends.push(await restored(async () => {}));
      });
      expect([...ends, first]).to.deep.equal(['restored', refused()]);
      expect(readdirSync(path('there'))).to.deep.equal(['events.sqlite']);
    });
  });
});
