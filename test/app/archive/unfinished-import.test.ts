import { expect } from 'chai';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { beginImport, completeImport } from '../../../domain/operators/import.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc, type Called } from '../cli/command-line.ts';
import { addTask, manifestIn, onLog } from './small-log.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');
const EXPORT = 'the export';

describe('a log with an unfinished import', () => {
  const directory = useTemporaryDirectory();
  const path = (name: string): string => join(directory(), name);
  let server: EventStoreDbServer | undefined;
  afterEach(() => {
    server?.stop();
    server = undefined;
  });
  const here = (...words: string[]): Promise<Called> =>
    svc(words, { env: { SVC_DATA_DIR: path('here') } });

  beforeEach(() =>
    onLog(path('here'), async (store) => {
      await beginImport(store, EXPORT, 10, context());
      await addTask(store, AT);
    }),
  );

  for (const command of ['export', 'backup']) {
    it(`rejects ${command} until the import is completed`, async () => {
      const refused = await here(command, path('out'));
      expect(refused.code, refused.err).to.equal(5);
      expect(refused.err).to.include('run the same svc import (or svc restore) again');
      expect(readdirSync(directory())).to.deep.equal(['here']);
      await onLog(path('here'), (store) => completeImport(store, EXPORT, 10, context()));
      const made = await here(command, path('out'));
      expect(made.code, made.err).to.equal(0);
      expect(manifestIn(path('out')).events).to.be.at.least(1);
    });

    it(`rejects ${command} of a server too`, async () => {
      server = await EventStoreDbServer.start();
      const env = { SVC_DATA_DIR: path('beside'), SVC_EVENT_STORE_URL: server.url };
      await onLog(path('here'), (store) => completeImport(store, EXPORT, 10, context()));
      expect((await here('export', path('moved'))).code).to.equal(0);
      const stop = new AbortController();
      const broken = await svc(['import', path('moved')], {
        env,
        signal: stop.signal,
        terminal: true,
        written: { send: (text: string) => text.includes('checking') && stop.abort() } as never,
      });
      expect(broken.code, broken.err).to.equal(1);
      const refused = await svc([command, path('out')], { env });
      expect(refused.code, refused.err).to.equal(5);
      expect(existsSync(path('out'))).to.equal(false);
    });
  }
});

const context = (): CommandContext => ({
  commandId: newId(AT),
  actor: 'service',
  source: 'test',
  correlationId: EXPORT,
  now: AT,
});
