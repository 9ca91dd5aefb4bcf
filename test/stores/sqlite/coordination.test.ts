import { expect } from 'chai';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { DatabaseSync } from '@photostructure/sqlite';
import { silent } from '../../../observability/telemetry.ts';
import { CoordinationError, type Coordination } from '../../../scheduler/coordination.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { deleteDatabase } from '../../../stores/sqlite/database-file.ts';
import { longVersions } from '../../support/left-out.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the file of the embedded coordination store', () => {
  const directory = useTemporaryDirectory();
  let opened: Coordination[] = [];
  let now = 1_767_225_600_000;
  const open = async (): Promise<Coordination> => {
    const coordination = await openSqliteCoordination({
      directory: directory(),
      telemetry: silent,
      clock: () => now,
    });
    opened.push(coordination);
    return coordination;
  };
  const file = () => join(directory(), 'coordination.db');
  afterEach(async () => {
    await Promise.all(opened.map((coordination) => coordination.close()));
    opened = [];
  });
  leavesNothingOpen();

  it('is recreated when it is not a database', async () => {
    writeFileSync(file(), 'no database at all, but long enough to be taken for something');
    const coordination = await open();
    expect(await coordination.acquire('lease', 'one', 1_000)).to.not.equal(null);
  });

  it('has a WAL of limited size while another process writes as fast as it can', async () => {
    const coordination = await open();
    const writer = join(import.meta.dirname, 'coordination-writer.ts');
    const another = fork(writer, [directory()], { execArgv: ['--import', 'tsx/esm'] });
    let longest = 0;
    try {
      await once(another, 'message');
      // Each change writes at least a page. Without checkpoints, even the short version would grow the WAL to 48 MiB.
      for (let at = 0; at < (longVersions() ? 60_000 : 12_000); at += 1) {
        await coordination.count(`ours ${at % 1000}`, 1, 60_000);
        longest = Math.max(longest, statSync(`${file()}-wal`).size);
      }
    } finally {
      another.kill('SIGKILL');
      await once(another, 'exit');
    }
    expect(longest).to.be.below(24 * 1024 * 1024);
  });

  it('is opened as soon as another process releases it, whichever statement meets the lock', async () => {
    // Holds the lock longer than a call waits for it.
    const holds = `
      const { parentPort, workerData } = require('node:worker_threads');
      const { DatabaseSync } = require('@photostructure/sqlite');
      const held = new DatabaseSync(workerData);
      held.exec('BEGIN EXCLUSIVE');
      parentPort.postMessage('held');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      held.close();
    `;
    const holder = new Worker(holds, { eval: true, workerData: file() });
    const gone = once(holder, 'exit');
    await once(holder, 'message');
    const coordination = await open();
    expect(await coordination.acquire('lease', 'one', 1_000)).to.not.equal(null);
    await gone;
  });

  it('lets all processes switch to a new file when it was deleted', async () => {
    const one = await open();
    const two = await open();
    await one.acquire('lease', 'one', 1_000);
    deleteDatabase(file());
    expect(await two.acquire('lease', 'two', 1_000)).to.not.equal(null);
    expect(await one.acquire('lease', 'one', 1_000)).to.equal(null);
  });

  it('is used again once it can be reopened', async () => {
    const coordination = await open();
    await coordination.acquire('lease', 'one', 1_000);
    deleteDatabase(file());
    mkdirSync(file());
    const refused: unknown = await coordination.recall('x').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(CoordinationError);
    expect(String(refused)).to.contain('cannot be opened');
    const again: unknown = await coordination.recall('x').catch((error: unknown) => error);
    expect(String(again)).to.contain('cannot be opened');
    rmdirSync(file());
    expect(await coordination.acquire('lease', 'two', 1_000)).to.not.equal(null);
  });

  it('is migrated from the first release, with its leases and members', async () => {
    const old = new DatabaseSync(file());
    old.exec(`
      CREATE TABLE leases (
        name TEXT PRIMARY KEY, owner TEXT, fence INTEGER NOT NULL, ends REAL NOT NULL) WITHOUT ROWID;
      CREATE TABLE members (
        id TEXT PRIMARY KEY, about TEXT NOT NULL, ends REAL NOT NULL) WITHOUT ROWID;
      CREATE TABLE counters (
        name TEXT NOT NULL, length REAL NOT NULL, begins REAL NOT NULL, sum REAL NOT NULL,
        PRIMARY KEY (name, length)) WITHOUT ROWID;
      CREATE TABLE remembered (
        name TEXT PRIMARY KEY, value TEXT NOT NULL, fence INTEGER NOT NULL) WITHOUT ROWID;
      INSERT INTO leases VALUES ('lease', 'one', 7, ${now + 1_000});
      INSERT INTO members VALUES ('one', '{}', ${now + 1_000});
      PRAGMA user_version = 1;
    `);
    old.close();
    const coordination = await open();
    expect(await coordination.acquire('lease', 'two', 1_000)).to.equal(null);
    expect((await coordination.alive()).map(({ id }) => id)).to.deep.equal(['one']);
    expect((await coordination.acquire('lease', 'one', 1_000))?.fence).to.equal(7);
  });

  it('returns larger fences after it was deleted than before', async () => {
    const one = await open();
    const before = await one.acquire('lease', 'one', 1_000);
    await one.release('lease', 'one');
    const second = await one.acquire('lease', 'two', 1_000);
    await one.close();
    deleteDatabase(file());
    now += 1_000;
    const after = await (await open()).acquire('lease', 'one', 1_000);
    expect(second?.fence).to.be.greaterThan(before?.fence ?? Infinity);
    expect(after?.fence).to.be.greaterThan(second?.fence ?? Infinity);
  });

  it('is awaited without blocking the event loop while another process writes', async () => {
    const coordination = await open();
    const other = new DatabaseSync(file());
    other.exec('BEGIN IMMEDIATE');
    let settled = false;
    const acquiring = coordination.acquire('lease', 'one', 1_000).finally(() => (settled = true));
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(settled).to.equal(false);
    other.exec('COMMIT');
    other.close();
    expect(await acquiring).to.not.equal(null);
  });

  it('loses expired rows', async () => {
    const coordination = await open();
    await coordination.heartbeat('gone', {}, 1_000);
    await coordination.count('requests', 1, 1_000);
    now += 120_000;
    await coordination.heartbeat('here', {}, 1_000);
    const database = new DatabaseSync(file());
    const rows = database
      .prepare('SELECT id FROM members UNION ALL SELECT name FROM counters')
      .all();
    database.close();
    expect(rows.map((row: object) => ({ ...row }))).to.deep.equal([{ id: 'here' }]);
  });
});
