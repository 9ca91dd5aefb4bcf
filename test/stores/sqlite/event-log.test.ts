import { expect } from 'chai';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { EventCodec, EventStore } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import {
  openSqliteEventStore,
  type SqliteEventStoreOptions,
} from '../../../stores/sqlite/event-log/event-store.ts';
import type { Notices } from '../../../stores/sqlite/event-log/following/notices.ts';
import { logFile, openLogForWriting } from '../../../stores/sqlite/event-log/schema.ts';
import { Writer } from '../../../stores/sqlite/event-log/writing/writer.ts';
import {
  Follower,
  event,
  events,
  idsOf,
  readAllOf,
  rejected,
} from '../../contracts/event-store-subject.ts';
import { collectingLines } from '../../support/reporting-to.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** Sends and receives nothing, as if every notice were lost. */
const deaf: Notices = {
  isReachable: false,
  publish() {},
  subscribe: () => () => {},
  async close() {},
};

describe('the embedded event log', () => {
  const directory = useTemporaryDirectory();
  const opened: EventStore[] = [];
  const open = async (options: Partial<SqliteEventStoreOptions> = {}): Promise<EventStore> => {
    const store = await openSqliteEventStore({
      directory: directory(),
      codec: plainCodec,
      telemetry: silent,
      ...options,
    });
    opened.push(store);
    return store;
  };
  leavesNothingOpen();
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
  });

  describe('opening', () => {
    it('rejects a log of a newer release by name, and leaves it unchanged', async () => {
      await (await open()).close();
      const file = logFile(directory());
      const database = openLogForWriting(file, false, undefined);
      database.exec('PRAGMA user_version = 99');
      database.close();
      const error = await rejected('NEWER_SCHEMA', open());
      expect(error.message).to.include(file).and.to.include('newer release').and.to.include('99');
    });

    it('rejects a file that is not a log, by name', async () => {
      writeFileSync(logFile(directory()), 'x'.repeat(10_000));
      const error = await rejected('UNAVAILABLE', open());
      expect(error.message).to.include(logFile(directory())).and.to.include('not a database');
    });

    it('reports a folder that cannot be created', async () => {
      const file = join(directory(), 'file');
      writeFileSync(file, '');
      const error = await rejected('UNAVAILABLE', open({ directory: join(file, 'below') }));
      expect(error.message).to.include(file);
    });

    it('creates one log when several stores open it at once', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, () => open()));
      await Promise.all(stores.map((store, i) => store.append(`s-${i}`, [event(i)], 'none')));
      for (const store of stores) expect(await store.readAll('', 10)).to.have.lengthOf(4);
    });
  });

  describe('appending', () => {
    it('keeps the appends before the first failure of a sequence', async () => {
      const store = await open();
      await store.append('two', [event(0)], 'none');
      await rejected(
        'CONFLICT',
        store.appendInOrder([
          { stream: 'one', events: [event(1)], expected: 'none' },
          { stream: 'two', events: [event(2)], expected: 'none' },
        ]),
      );
      expect(await store.readStream('one')).to.have.lengthOf(1);
    });

    it('rejects an id of another event, and names it', async () => {
      const store = await open();
      const taken = event(0);
      await store.append('one', [taken], 'none');
      for (const expected of ['none', 'any'] as const) {
        const error = await rejected(
          'INVALID_EVENT',
          store.append('two', [event(1), taken], expected),
        );
        expect(error.message).to.include(taken.id).and.to.include('revision 0 of one');
      }
      const twice = event(3);
      await rejected('INVALID_EVENT', store.append('one', [twice, twice], 0));
      expect(await store.readStream('two')).to.deep.equal([]);
      expect((await store.append('two', [event(2)], 'none')).position).to.equal('0000000000000002');
    });

    it('assigns positions without gaps, also around rejected appends', async () => {
      const store = await open();
      const outcomes = await Promise.allSettled(
        Array.from({ length: 300 }, (_, i) =>
          store.append(`s-${i % 100}`, events(1 + (i % 2)), i < 100 ? 'none' : 'any'),
        ),
      );
      await Promise.allSettled(
        Array.from({ length: 50 }, (_, i) => store.append(`s-${i}`, events(1), 'none')),
      );
      expect(outcomes.every(({ status }) => status === 'fulfilled')).to.equal(true);
      const positions = (await readAllOf(store, '', 's-')).map(({ position }) => Number(position));
      expect(positions).to.deep.equal(positions.map((_, i) => i + 1));
      expect(positions).to.have.lengthOf(450);
    });

    it('is UNAVAILABLE while another process holds the lock, and works afterwards', async () => {
      const store = await open({ lockTimeout: 50 });
      const other = openLogForWriting(logFile(directory()), false, undefined);
      try {
        other.exec('BEGIN IMMEDIATE');
        const error = await rejected('UNAVAILABLE', store.append('one', [event(0)], 'none'));
        expect(error.message).to.include('locked by another process');
        other.exec('ROLLBACK');
        expect((await store.append('one', [event(0)], 'none')).revision).to.equal(0);
      } finally {
        other.close();
      }
    });

    it('is UNAVAILABLE without writing when the disk is full, and works once there is space', async () => {
      const store = await open({ maxBytes: 400_000 });
      const large = { text: 'x'.repeat(50_000) };
      await store.append('big', [event(0, large), event(1, large)], 'none');
      const tooMuch = Array.from({ length: 10 }, (_, i) => event(i, large));
      const error = await rejected('UNAVAILABLE', store.append('more', tooMuch, 'none'));
      expect(error.message).to.include('disk is full').and.to.include(logFile(directory()));
      expect(await store.readStream('more')).to.deep.equal([]);
      expect(await store.readAll('', 100)).to.have.lengthOf(2);
      expect((await store.append('small', [event(0)], 'none')).revision).to.equal(0);
      await store.truncate('big', 2);
      expect((await store.append('more', tooMuch.slice(0, 3), 'none')).revision).to.equal(2);
    });

    it('does not recreate a log whose file is gone', async () => {
      const store = await open();
      await store.append('one', [event(0)], 'none');
      for (const ending of ['', '-wal', '-shm']) {
        rmSync(logFile(directory()) + ending, { force: true });
      }
      await store.append('one', [event(1)], 0).catch(() => undefined);
      await store.close();
      expect(existsSync(logFile(directory()))).to.equal(false);
    });
  });

  describe('a writer thread that dies', () => {
    it('leaves the outcome of pending appends unknown, and is reported until one succeeds', async () => {
      let starts = 0;
      const lines: string[] = [];
      const writer = new Writer({
        settings: { file: 'none', create: true, lockTimeout: 0, maxBytes: undefined },
        telemetry: collectingLines(lines),
        onCommit: () => {},
        startThread: () => {
          starts += 1;
          const dies = `
            const { parentPort } = require('node:worker_threads');
            parentPort.postMessage({ kind: 'ready' });
            parentPort.on('message', ({ kind, sequences }) => {
              if (kind === 'close') parentPort.close();
              else if (${String(starts < 3)}) throw new Error('out of luck');
              else {
                const results = sequences.map(({ ticket }) => ({ ticket, appended: [] }));
                const timing = { writing: 0, waitedForLock: 0 };
                parentPort.postMessage({ kind: 'appended', createdAt: 0, results, timing });
              }
            });`;
          return new Worker(dies, { eval: true });
        },
      });
      await writer.start();
      const append = { stream: 'one', events: [event(0)], expected: 'none' } as const;
      const encoded = append.events.map((one) => plainCodec.encode(one));
      const error = await rejected('OUTCOME_UNKNOWN', writer.append([append], [encoded]));
      expect(error.message).to.include('out of luck');
      await rejected('OUTCOME_UNKNOWN', writer.append([append], [encoded]));
      const away = `event log unavailable: ${error.message}`;
      expect(lines).to.deep.equal([away]);
      await writer.append([append], [encoded]);
      expect(starts).to.equal(3);
      expect(lines).to.deep.equal([away, 'event log available again']);
      await writer.close();
    });
  });

  describe('following an existing log', () => {
    for (const prefixes of [undefined, ['one']]) {
      it(`reports that it has caught up only at the end (${prefixes ? 'some' : 'all'} streams)`, async () => {
        const before = await open();
        const appended = events(1_200);
        await before.append('one', appended, 'none');
        await before.append('two', events(3), 'none');
        await before.close();
        const store = await open({ notices: deaf });
        const follower = new Follower(store, '', prefixes);
        const end = await follower.caughtUp('');
        expect(end).to.equal(await store.head());
        expect(idsOf(follower.events).slice(0, 1_200)).to.deep.equal(idsOf(appended));
        await follower.end();
      });
    }
  });

  describe('following another process', () => {
    it('delivers its appends after notices', async () => {
      const [here, there] = [await open(), await open()];
      const follower = new Follower(here, '');
      await follower.caughtUp('');
      const appended = events(5);
      await there.append('one', appended, 'none');
      expect(idsOf(await follower.count(5))).to.deep.equal(idsOf(appended));
      await follower.end();
    });

    it('delivers them by polling when every notice is lost', async () => {
      const [here, there] = [await open({ notices: deaf }), await open({ notices: deaf })];
      const follower = new Follower(here, '');
      await follower.caughtUp('');
      for (let i = 0; i < 3; i += 1) {
        await there.append('one', events(1), 'any');
        await follower.count(i + 1);
      }
      await follower.end();
    });

    it('delivers everything in log order while both write', async () => {
      const stores = [await open(), await open()];
      const followers = stores.map((store) => new Follower(store, ''));
      await Promise.all(followers.map((follower) => follower.caughtUp('')));
      const writing = stores.map(async (store, s) => {
        for (let i = 0; i < 100; i += 1) await store.append(`s-${s}-${i}`, events(2), 'none');
      });
      const seen = await Promise.all(followers.map((follower) => follower.count(400)));
      await Promise.all(writing);
      for (const delivered of seen) {
        expect(delivered.map(({ position }) => Number(position))).to.deep.equal(
          Array.from({ length: 400 }, (_, i) => i + 1),
        );
      }
      await Promise.all(followers.map((follower) => follower.end()));
    });
  });

  describe('appends that may be announced later', () => {
    it('reach followers in log order, here and in another process', async () => {
      const stores = [await open(), await open()];
      const followers = stores.map((store) => new Follower(store, ''));
      await Promise.all(followers.map((follower) => follower.caughtUp('')));
      const [here, there] = stores;
      const writing = Array.from({ length: 30 }, async (_, index) => {
        const append = { events: events(2), expected: 'none', mayAnnounceLater: true } as const;
        await here?.appendInOrder([{ stream: `later-${index}`, ...append }]);
        if (index % 10 === 0) await there?.append(`there-${index}`, events(1), 'none');
        if (index % 7 === 0) await here?.append(`here-${index}`, events(1), 'none');
      });
      await Promise.all(writing);
      for (const follower of followers) {
        const positions = (await follower.count(68)).map(({ position }) => Number(position));
        expect(positions).to.deep.equal(Array.from({ length: 68 }, (_, index) => index + 1));
        await follower.end();
      }
    });

    it('are found even without a further notice', async () => {
      let tell: (message: string) => void = () => {};
      const subscribe: Notices['subscribe'] = (listener) => {
        tell = listener;
        return () => {};
      };
      const here = await open({ notices: { ...deaf, subscribe } });
      const there = await open({ notices: deaf });
      const follower = new Follower(here, '');
      await follower.caughtUp('');
      tell('log later');
      await there.append('one', events(1), 'none');
      expect(await follower.count(1)).to.have.lengthOf(1);
      await follower.end();
    });
  });

  describe('following another process and itself', () => {
    it("reads the other's events, and delivers its own directly", async () => {
      const read: string[] = [];
      const decodeParsed: EventCodec['decodeParsed'] = (parsed) => {
        read.push(parsed.stream);
        return plainCodec.decodeParsed(parsed);
      };
      const here = await open({ notices: deaf, codec: { ...plainCodec, decodeParsed } });
      const there = await open();
      const follower = new Follower(here, '');
      await follower.caughtUp('');
      for (let i = 0; i < 10; i += 1) {
        await there.append(`there-${i}`, events(2), 'none');
        await here.append(`here-${i}`, events(2), 'none');
      }
      const positions = (await follower.count(40)).map(({ position }) => Number(position));
      expect(positions).to.deep.equal(Array.from({ length: 40 }, (_, i) => i + 1));
      expect(read).to.have.lengthOf(20);
      expect(read.every((stream) => stream.startsWith('there-'))).to.equal(true);
      await follower.end();
    });

    it('follows no notice beyond the end of the log', async () => {
      let tell: (message: string) => void = () => {};
      const subscribe: Notices['subscribe'] = (listener) => {
        tell = listener;
        return () => {};
      };
      const here = await open({ notices: { ...deaf, subscribe } });
      const there = await open();
      const follower = new Follower(here, '');
      await follower.caughtUp('');
      for (const hint of ['log 1000000', 'log 0', 'log -1', 'log', 'log x']) {
        tell(hint);
        await there.append(hint, events(1), 'none');
        tell(hint);
      }
      expect(await follower.count(5)).to.have.lengthOf(5);
      await follower.end();
    });
  });

  describe('closing', () => {
    it('ends subscriptions with an error', async () => {
      const store = await open();
      const follower = new Follower(store, '');
      await follower.caughtUp('');
      const ended = rejected('UNAVAILABLE', follower.next());
      await store.close();
      await ended;
    });

    it('makes every call UNAVAILABLE, and may be repeated', async () => {
      const store = await open();
      await store.close();
      await store.close();
      await rejected('UNAVAILABLE', store.append('one', [event(0)], 'none'));
      await rejected('UNAVAILABLE', store.readStream('one'));
      await rejected('UNAVAILABLE', store.readAll('', 1));
      await rejected('UNAVAILABLE', store.head());
      await rejected('UNAVAILABLE', store.truncate('one', 0));
      await rejected('UNAVAILABLE', store.ping());
    });
  });
});
