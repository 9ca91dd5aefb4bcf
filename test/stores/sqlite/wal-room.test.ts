import { copyFileSync, mkdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { logFile, openLogForWriting } from '../../../stores/sqlite/event-log/schema.ts';
import { LogWriter } from '../../../stores/sqlite/event-log/writing/log-writer.ts';
import { WAL_ROOM, WalRoom } from '../../../stores/sqlite/event-log/writing/wal-room.ts';
import { event } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

const MIB = 1024 * 1024;

describe("the room of the log's WAL", () => {
  const directory = useTemporaryDirectory();
  const wal = (): number => statSync(`${logFile(directory())}-wal`).size;
  const open = (folder = directory()): Promise<EventStore> =>
    openSqliteEventStore({ directory: folder, codec: plainCodec, telemetry: silent });

  async function makeRoom(store: EventStore): Promise<void> {
    await store.makeRoom?.();
  }

  /** What a process that dies now leaves behind, as a log of its own. */
  function leftBehind(name: string): string {
    const folder = join(directory(), name);
    mkdirSync(folder);
    const file = logFile(directory());
    for (const part of [file, `${file}-wal`]) copyFileSync(part, join(folder, basename(part)));
    return folder;
  }

  /** How many events are in the log at a folder, which is opened and closed for it. */
  async function countAt(folder: string): Promise<number> {
    const store = await open(folder);
    try {
      return (await store.readAll('', 1000)).length;
    } finally {
      await store.close();
    }
  }

  it('is made by a store, between the appends of several, of which none is lost', async () => {
    const stores = [await open(), await open()] as const;
    try {
      await stores[0].append('before', [event(0)], 'none');
      let making = true;
      const appended = stores.map(async (store, i) => {
        let count = 0;
        while (making && count < 300) {
          const expected = count === 0 ? 'none' : count - 1;
          await store.append(`beside-${i}`, [event(count)], expected);
          count += 1;
        }
        return count;
      });
      await Promise.all(stores.map(makeRoom));
      making = false;
      const [first = 0, second = 0] = await Promise.all(appended);
      expect(wal()).to.equal(WAL_ROOM);
      expect(await countAt(leftBehind('dead'))).to.equal(1 + first + second);
      expect(await stores[0].readStream('beside-1', { limit: 1000 })).to.have.lengthOf(second);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
    expect(wal()).to.equal(0);
    expect(await countAt(directory())).to.be.above(2);
  });

  it('stays as it is while the store is used, and is made once', async () => {
    const store = await open();
    try {
      await makeRoom(store);
      await store.append('one', [event(0, { text: 'x'.repeat(MIB / 4) })], 'none');
      await makeRoom(store);
      expect(wal()).to.equal(WAL_ROOM);
    } finally {
      await store.close();
    }
  });

  it('is no part of a log that nothing was written to since', async () => {
    const store = await open();
    try {
      await store.append('one', [event(0)], 'none');
    } finally {
      await store.close();
    }
    const again = await open();
    try {
      await makeRoom(again);
      expect(await countAt(leftBehind('dead'))).to.equal(1);
    } finally {
      await again.close();
    }
  });

  it('ends with the store, and keeps its end waiting for a part at most', async () => {
    const store = await open();
    const making = makeRoom(store);
    await store.close();
    await making;
    expect(wal()).to.equal(0);
  });

  describe('a part of it', () => {
    it('is added while nobody else writes, behind all that is there', () => {
      const file = logFile(directory());
      const database = openLogForWriting(file, true, undefined);
      const other = openLogForWriting(file, false, undefined);
      try {
        const writer = new LogWriter(database, 0);
        const room = new WalRoom(file, 5 * MIB);
        const before = wal();
        other.exec('BEGIN IMMEDIATE');
        expect(() => room.grow((work) => writer.alone(work))).to.throw('database is locked');
        expect(wal()).to.equal(before);
        other.exec('ROLLBACK');
        const more: boolean[] = [];
        while (more.at(-1) !== false) more.push(room.grow((work) => writer.alone(work)));
        expect(wal()).to.equal(5 * MIB);
        expect(more).to.deep.equal([true, true, true, true, false]);
      } finally {
        other.close();
        database.close();
      }
    });

    it('is not added where that would leave little of the disk', () => {
      const file = logFile(directory());
      const database = openLogForWriting(file, true, undefined);
      try {
        const room = new WalRoom(file, 2 ** 50);
        const before = wal();
        expect(room.grow(() => expect.fail('it was begun'))).to.equal(false);
        expect(wal()).to.equal(before);
      } finally {
        database.close();
      }
    });
  });
});
