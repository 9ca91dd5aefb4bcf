import { expect } from 'chai';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { makeBackup } from '../../../app/archive/make-archive.ts';
import { restore } from '../../../app/archive/restore.ts';
import { SystemClock } from '../../../app/clock.ts';
import { openStores, type Stores } from '../../../app/stores.ts';
import type { CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { holdCommand } from '../../../domain/operators/operations.ts';
import { silent } from '../../../observability/telemetry.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { addTask, onLog } from '../archive/small-log.ts';
import { svc } from './command-line.ts';

interface Finding {
  readonly check: string;
  readonly verdict: 'ok' | 'warn' | 'fault';
  readonly found: string;
}

/** An unused port. */
const NOWHERE = 'http://127.0.0.1:1';

/** The first generation of a view. */
const DUE_FILE = `due-s${dueProjection.schema}-g1.db`;

describe('svc doctor without changes', function () {
  this.timeout(60_000);
  const directory = useTemporaryDirectory();
  const path = (name: string): string => join(directory(), name);
  const clock = new SystemClock();

  async function examined(
    folder: string,
    url = NOWHERE,
  ): Promise<{ readonly code: number; readonly of: (check: string) => Finding | undefined }> {
    const env = { SVC_DATA_DIR: folder, SVC_URL: url };
    const { code, json } = await svc(['doctor', '--json'], { env });
    const findings = json['findings'] as readonly Finding[];
    return { code, of: (check) => findings.find((each) => each.check === check) };
  }

  /**
   * The files of a folder, by name; for the index of a WAL, which SQLite may recreate, only the
   * name.
   */
  function contents(folder: string): Readonly<Record<string, string>> {
    const said = (name: string): string => {
      if (name.endsWith('-shm') || name === 'peers') return '';
      return createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex');
    };
    return Object.fromEntries(readdirSync(folder).map((name) => [name, said(name)]));
  }

  async function withStores<T>(folder: string, work: (stores: Stores) => Promise<T>): Promise<T> {
    const nowhere = { eventStoreUrl: undefined, readModelUrl: undefined };
    const stores = await openStores({ dataDirectory: folder, ...nowhere }, silent);
    try {
      return await work(stores);
    } finally {
      await stores.close();
    }
  }

  /** The files of a service: events, a readable view, and a heartbeat. */
  async function serve({ store, readModel, coordination }: Stores): Promise<void> {
    await addTask(store, Date.now());
    const how = { generation: 1, fence: 1, bulk: false };
    const writer = await readModel.openWriter(dueProjection, how);
    await writer.close();
    await readModel.switchTo(dueProjection, 1);
    await coordination.heartbeat('somebody', { roles: [] }, 60_000);
  }

  /** Copies existing files, except the sockets. */
  function copy(from: string, to: string): void {
    const filter = (source: string): boolean => !source.endsWith('peers');
    cpSync(path(from), path(to), { recursive: true, filter });
  }

  /**
   * Creates a folder as a stopped service leaves it. It is a copy, because SQLite may move the WAL
   * of a database closed in this process at the next garbage collection.
   */
  async function leave(folder: string): Promise<void> {
    await withStores(path('served'), serve);
    copy('served', folder);
  }

  it('reports missing views and coordination of a restored folder without creating them', async () => {
    await onLog(path('here'), (store) => addTask(store, Date.now()));
    const progress = { stage: () => {}, move: () => {}, signal: new AbortController().signal };
    const place = { dataDirectory: path('here'), eventStoreUrl: undefined };
    const target = path('backup');
    await makeBackup({ place, target, clock, progress, release: '1.2.3' });
    const there = { dataDirectory: path('there'), eventStoreUrl: undefined };
    const asked = { archive: target, place: there, clock, progress, reason: undefined };
    await restore(asked, async () => {});
    const before = contents(path('there'));
    expect(Object.keys(before)).to.deep.equal(['events.sqlite']);

    const { code, of } = await examined(path('there'));
    expect(contents(path('there'))).to.deep.equal(before);
    expect(code).to.equal(0);
    expect(of('views')?.verdict).to.equal('ok');
    const said = 'a start creates views.db and coordination.db';
    expect(of('views')?.found).to.include(said);
    expect(of('lag')).to.include({
      verdict: 'ok',
      found: 'no views yet; a start builds them',
    });
    expect(of('tasks')?.found).to.match(/^1 active/);
    expect(of('keys')?.verdict).to.equal('ok');
  });

  it('creates no file in an empty folder', async () => {
    mkdirSync(path('empty'), { mode: 0o700 });
    expect((await examined(path('empty'))).of('log')).to.equal(undefined);
    expect(readdirSync(path('empty'))).to.deep.equal([]);
    await examined(path('none'));
    expect(existsSync(path('none'))).to.equal(false);
  });

  it('reads the files of a stopped service as they are', async () => {
    await leave('stopped');
    const before = contents(path('stopped'));
    expect(before).to.include.all.keys('views.db', 'coordination.db', DUE_FILE);
    const { of } = await examined(path('stopped'));
    expect(of('processes')?.found).to.match(/^1 alive/);
    expect(of('lag')?.found).to.include('agents');
    expect(contents(path('stopped'))).to.deep.equal(before);
  });

  it('reads the WAL of a killed service and keeps it', async () => {
    await withStores(path('running'), async (stores) => {
      await serve(stores);
      copy('running', 'killed');
    });
    const before = contents(path('killed'));
    expect(before).to.include.all.keys('events.sqlite-wal', 'views.db-wal', 'coordination.db-wal');
    const { of } = await examined(path('killed'));
    expect(of('events')?.found).to.equal('1 in the log');
    expect(of('processes')?.found).to.match(/^1 alive/);
    expect(contents(path('killed'))).to.deep.equal(before);
  });

  for (const name of ['views.db', 'coordination.db', DUE_FILE]) {
    it(`reports a damaged ${name} and keeps it`, async () => {
      await leave('damaged');
      writeFileSync(path(`damaged/${name}`), 'x'.repeat(8_192));
      // SQLite would read these instead of the damaged file.
      for (const beside of ['-wal', '-shm'])
        rmSync(path(`damaged/${name}${beside}`), { force: true });
      const before = contents(path('damaged'));
      const { code, of } = await examined(path('damaged'));
      expect(code).to.equal(1);
      const findings = ['stores', 'lag'].map((check) => of(check)?.found ?? '').join();
      expect(findings)
        .to.include(path(`damaged/${name}`))
        .and.to.include('damaged');
      expect(contents(path('damaged'))).to.deep.equal(before);
    });
  }

  it('checks again if a service starts to write meanwhile', async () => {
    await onLog(path('here'), (store) => addTask(store, Date.now()));
    mkdirSync(path('data'), { mode: 0o700 });
    cpSync(path('here/events.sqlite'), path('data/events.sqlite'));
    const id = newId(Date.now());
    const context: CommandContext = {
      commandId: id,
      actor: 'service',
      source: 'test',
      correlationId: id,
      now: Date.now(),
    };
    const begin = () => onLog(path('data'), (store) => holdCommand(store, 'meanwhile', context));
    const server = createServer((_, response) => {
      void begin().then(() => response.end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const { of } = await examined(path('data'), `http://127.0.0.1:${port}`);
      expect(of('orders')?.found).to.include('meanwhile');
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
