import { expect } from 'chai';
import { BEGINNING, EventStoreError, type EventStore } from '../../../domain/event-store.ts';
import {
  hastyTimings,
  numbered,
  numbersOf,
  onWorkbench,
  upTo,
} from '../../support/eventstoredb-server/workbench.ts';
import { BROKEN_KEY, NEWER_VERSION } from '../../support/plain-codec.ts';
import { eventually } from '../../support/signals.ts';

/** The code that a promise rejects with. */
async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(EventStoreError);
  return (error as EventStoreError).code;
}

describe('reading from EventStoreDB', () => {
  const bench = onWorkbench();
  let store: EventStore;
  beforeEach(async () => {
    store = await bench().open();
  });

  async function fill(count: number, stream = 'task-1'): Promise<void> {
    await store.append(
      stream,
      upTo(count).map((number) => numbered(number)),
      'any',
    );
  }

  describe('a stream', () => {
    it("returns each event with its position and the server's time", async () => {
      await fill(3);
      const events = await store.readStream('task-1');
      const all = await store.readAll(BEGINNING, 10);
      expect(events).to.deep.equal(all);
      expect(events.map(({ revision }) => revision)).to.deep.equal([0, 1, 2]);
      expect(events[0]?.createdAt).to.equal(
        new Date(bench().server.log.all[0]?.created ?? 0).toISOString(),
      );
      const positions = events.map(({ position }) => position);
      expect(positions).to.deep.equal([...new Set(positions)].sort());
      expect(positions.every((position) => /^[0-9a-f]{32}$/.test(position))).to.equal(true);
    });

    it('reads from either end, from a revision, up to a limit', async () => {
      await fill(5);
      const read = async (options: Parameters<EventStore['readStream']>[1]) =>
        numbersOf(await store.readStream('task-1', options));
      expect(await read({ from: 3 })).to.deep.equal([3, 4]);
      expect(await read({ from: 7 })).to.be.empty;
      expect(await read({ direction: 'backwards', limit: 2 })).to.deep.equal([4, 3]);
      expect(await read({ direction: 'backwards', from: 1 })).to.deep.equal([1, 0]);
      expect(await read({ limit: 0 })).to.be.empty;
    });

    it('is empty when it does not exist', async () => {
      expect(await store.readStream('task-9')).to.be.empty;
    });

    it('does not exist when it belongs to the engine', async () => {
      bench().server.write('$user-admin', '$User', '{"hash":"secret"}');
      expect(await store.readStream('$user-admin')).to.be.empty;
    });

    it('is rejected as a whole when one event is broken', async () => {
      await fill(1);
      bench().server.write('task-1', 'EventPublished', '{"number": ');
      bench().server.write('task-2', 'EventPublished', `{"${BROKEN_KEY}":1}`);
      expect(await codeOf(store.readStream('task-1'))).to.equal('CORRUPT_EVENT');
      expect(await codeOf(store.readStream('task-2'))).to.equal('CORRUPT_EVENT');
      expect(await store.readStream('task-1', { limit: 1 })).to.have.lengthOf(1);
    });

    it('is rejected from servers that send no positions', async () => {
      await fill(1);
      bench().server.faults.noPositionsInStreams = true;
      expect(await codeOf(store.readStream('task-1'))).to.equal('UNAVAILABLE');
    });
  });

  describe('the whole log', () => {
    for (const written of ['each committed by itself', 'in old transactions']) {
      it(`returns pages strictly after a position until the end, of events ${written}`, async () => {
        bench().server.log.writesTransactions = written === 'in old transactions';
        await fill(3, 'task-1');
        await fill(4, 'run-1');
        const read: number[] = [];
        for (let after = BEGINNING; ;) {
          const page = await store.readAll(after, 2);
          if (page.length === 0) break;
          read.push(...numbersOf(page));
          after = page.at(-1)?.position ?? after;
        }
        expect(read).to.deep.equal([0, 1, 2, 0, 1, 2, 3]);
      });
    }

    it('does not end at a page of engine events', async () => {
      await fill(1);
      for (const _ of upTo(600)) bench().server.write('$stats', '$statsCollected', '{}');
      await fill(1, 'task-2');
      const [first] = await store.readAll(BEGINNING, 1);
      const next = await store.readAll(first?.position ?? '', 1);
      expect(next.map(({ stream }) => stream)).to.deep.equal(['task-2']);
      expect(await store.readAll(next[0]?.position ?? '', 1)).to.be.empty;
    });

    it('returns a broken event with its fault, and rejects a newer one', async () => {
      bench().server.write('task-1', 'EventPublished', '{"number": ');
      const [broken] = await store.readAll(BEGINNING, 5);
      expect(broken?.data).to.equal('{"number": ');
      expect(broken?.fault).to.be.a('string');
      bench().server.write('task-1', 'New', '{}', `{"schemaVersion":"${NEWER_VERSION}"}`);
      expect(await store.readAll(BEGINNING, 5)).to.have.lengthOf(1);
      expect(await codeOf(store.readAll(broken?.position ?? '', 5))).to.equal('NEWER_SCHEMA');
    });

    it('rejects a position of another engine', async () => {
      expect(await codeOf(store.readAll('0000000000000012', 5))).to.equal('INVALID_EVENT');
    });
  });

  describe('the head', () => {
    it('is the last event that does not belong to the engine', async () => {
      expect(await store.head()).to.equal(BEGINNING);
      bench().server.write('$stats', '$statsCollected', '{}');
      expect(await store.head()).to.equal(BEGINNING);
      await fill(2);
      const [, last] = await store.readStream('task-1');
      expect(await store.head()).to.equal(last?.position);
      for (const _ of upTo(40)) bench().server.write('$stats', '$statsCollected', '{}');
      expect(await store.head()).to.equal(last?.position);
      expect(await store.head()).to.equal(last?.position);
      await fill(1, 'task-2');
      const [newest] = await store.readStream('task-2');
      expect(await store.head()).to.equal(newest?.position);
    });
  });

  describe('with a server that fails', () => {
    it('retries', async () => {
      await fill(3);
      bench().server.faults.onNextReads('unavailable', 'breaks-midway');
      expect(numbersOf(await store.readStream('task-1'))).to.deep.equal([0, 1, 2]);
      bench().server.faults.onNextReads('breaks-midway');
      expect(numbersOf(await store.readAll(BEGINNING, 9))).to.deep.equal([0, 1, 2]);
    });

    it('is UNAVAILABLE without a response', async () => {
      bench().server.faults.silentToAll = true;
      const hasty = await bench().open({ timings: { readMs: 30, pingMs: 30 } });
      for (const call of [
        () => hasty.readStream('task-1'),
        () => hasty.readAll(BEGINNING, 1),
        () => hasty.head(),
        () => hasty.ping(),
        () => hasty.append('task-1', [numbered(1)], 'none'),
      ]) {
        expect(await codeOf(call())).to.equal('UNAVAILABLE');
      }
    });

    it('is UNAVAILABLE while the server is down, and works when it returns', async () => {
      await fill(1);
      const hasty = await bench().open({ timings: hastyTimings });
      await eventually(() => hasty.ping());
      bench().server.stop();
      expect(await codeOf(hasty.readStream('task-1'))).to.equal('UNAVAILABLE');
      expect(await codeOf(hasty.ping())).to.equal('UNAVAILABLE');
      await bench().restart();
      await eventually(() => hasty.ping());
      await eventually(async () => (await hasty.readStream('task-1')).length === 1);
    });
  });

  it('rejects calls once closed', async () => {
    await fill(1);
    await store.close();
    await store.close();
    expect(await codeOf(store.readStream('task-1'))).to.equal('UNAVAILABLE');
    expect(await codeOf(store.append('task-1', [numbered(1)], 'any'))).to.equal('UNAVAILABLE');
    expect(await codeOf(store.ping())).to.equal('UNAVAILABLE');
  });

  it('does not mistake a read that was interrupted by closing for a complete one', async () => {
    await fill(1);
    bench().server.faults.onNextReads('silent');
    const read = codeOf(store.readStream('task-1'));
    await eventually(() => bench().server.reads > 1);
    await store.close();
    expect(await read).to.equal('UNAVAILABLE');
  });

  it('survives the loss of a whole cluster, and finds it again', async () => {
    const { port } = bench().server;
    const hosts = `127.0.0.1:${port},127.0.0.1:${port}`;
    const url = `esdb://${hosts}?tls=false&maxDiscoverAttempts=1&discoveryInterval=1`;
    const cluster = await bench().open({ url, timings: { readMs: 2_000 } });
    await cluster.append('task-1', [numbered(1)], 'none');
    bench().server.stop();
    const reads = upTo(10).map(() => codeOf(cluster.readStream('task-1')));
    expect(new Set(await Promise.all(reads))).to.deep.equal(new Set(['UNAVAILABLE']));
    await bench().restart();
    await eventually(() => cluster.ping());
    expect(await cluster.readStream('task-1')).to.have.lengthOf(1);
  });

  it('finds the leader of a cluster', async () => {
    const { port } = bench().server;
    const cluster = await bench().open({
      url: `esdb://127.0.0.1:${port},127.0.0.1:${port}?tls=false`,
    });
    await cluster.append('task-1', [numbered(1)], 'none');
    const seed = await bench().open({ url: `esdb+discover://127.0.0.1:${port}?tls=false` });
    expect(await seed.readStream('task-1')).to.have.lengthOf(1);
  });
});

describe('truncating a stream in EventStoreDB', () => {
  const bench = onWorkbench();
  let store: EventStore;
  beforeEach(async () => {
    store = await bench().open();
    await store.append(
      'key-1',
      upTo(4).map((number) => numbered(number)),
      'none',
    );
  });

  const numbers = async (): Promise<readonly number[]> =>
    numbersOf(await store.readStream('key-1'));
  const metadata = (): unknown => {
    const last = bench().server.log.visible('$$key-1').at(-1);
    return last && JSON.parse(Buffer.from(last.data).toString());
  };

  it('hides earlier events, and keeps the numbering', async () => {
    await store.truncate('key-1', 3);
    expect(await numbers()).to.deep.equal([3]);
    expect((await store.append('key-1', [numbered(4)], 3)).revision).to.equal(4);
    expect(await numbers()).to.deep.equal([3, 4]);
  });

  it('never goes beyond the last event, which would hide new ones', async () => {
    await store.truncate('key-1', 100);
    expect(await numbers()).to.be.empty;
    await store.append('key-1', [numbered(4)], 3);
    expect(await numbers()).to.deep.equal([4]);
  });

  it('never goes back, and writes nothing needlessly', async () => {
    await store.truncate('key-1', 2);
    const length = bench().server.log.all.length;
    await store.truncate('key-1', 1);
    await store.truncate('key-1', 2);
    await store.truncate('key-9', 2);
    await store.truncate('key-1', 0);
    expect(bench().server.log.all).to.have.lengthOf(length);
    expect(await numbers()).to.deep.equal([2, 3]);
  });

  it('keeps other metadata', async () => {
    const present = { $maxAge: 9, $acl: { $r: ['ops'] }, mine: { a: 1 } };
    bench().server.write('$$key-1', '$metadata', JSON.stringify(present));
    await store.truncate('key-1', 1);
    expect(metadata()).to.deep.equal({ ...present, $tb: 1 });
  });

  it('lets the further of two concurrent truncations win', async () => {
    const other = await bench().open();
    await Promise.all([store.truncate('key-1', 1), other.truncate('key-1', 3)]);
    expect(metadata()).to.deep.equal({ $tb: 3 });
  });

  it('reports that a stream was deleted', async () => {
    bench().server.log.tombstone('key-1');
    expect(await codeOf(store.truncate('key-1', 1))).to.equal('STREAM_DELETED');
  });
});
