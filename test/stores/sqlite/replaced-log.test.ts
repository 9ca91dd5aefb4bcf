import { expect } from 'chai';
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { EventStore } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { numbered } from '../../support/eventstoredb-server/workbench.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('an embedded log whose file is replaced under a process', () => {
  const directory = useTemporaryDirectory();
  let store: EventStore;
  let revision = -1;

  beforeEach(async () => {
    store = await openSqliteEventStore({
      directory: directory(),
      codec: plainCodec,
      telemetry: silent,
    });
    revision = (await store.append('task-1', [numbered(1)], 'none')).revision;
  });
  afterEach(() => store.close());

  const codeOf = async (done: Promise<unknown>): Promise<string> =>
    done.then(
      () => 'done',
      (error: unknown) => (error as { readonly code: string }).code,
    );

  const append = async (): Promise<string> =>
    codeOf(
      store.append('task-1', [numbered(2)], revision).then((result) => {
        revision = result.revision;
      }),
    );

  for (const [how, take] of [
    ['replaced by a copy', (file: string, copy: string) => renameSync(copy, file)],
    ['deleted', (file: string) => rmSync(file)],
  ] as const) {
    it(`accepts no more events when it was ${how}, and is not healthy`, async () => {
      const file = logFile(directory());
      const copy = join(directory(), 'copy');
      copyFileSync(file, copy);
      take(file, copy);
      expect(await codeOf(store.ping())).to.equal('UNAVAILABLE');
      await eventually(async () => (await append()) === 'UNAVAILABLE');
    });
  }

  it('works again when the file is back', async () => {
    const file = logFile(directory());
    const aside = join(directory(), 'aside');
    renameSync(file, aside);
    await eventually(async () => (await append()) === 'UNAVAILABLE');
    renameSync(aside, file);
    await eventually(async () => (await append()) === 'done');
    await store.ping();
  });
});
