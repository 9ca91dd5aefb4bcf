import { expect } from 'chai';
import type {
  EventStore,
  RecordedEvent,
  SubscriptionMessage,
} from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { Filling } from '../../../projections/generations/filling.ts';
import { GenerationWriter } from '../../../projections/generations/generation-writer.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { countedCommands } from '../../../stores/mongodb/command-counts.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import { LogOfTest, request } from '../../projections/recorded.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { loggedCommands } from './logged-commands.ts';

/** Events per page of the log, and per batch of a fill. */
const PAGE = 500;
const BATCH = 4_000;

/**
 * The budget of commands. Each command costs a round trip, and each write waits for the journal and for a majority of a
 * replica set.
 */
for (const replicaSet of [undefined, 'rs0']) {
  const isAlone = replicaSet === undefined;
  describe(`the commands to ${isAlone ? 'a standalone server' : 'a replica set'}`, () => {
    let server: MongoServer;
    let readModel: ReadModel;
    /** The service's own counts, by metric and command. */
    let counted: Map<string, number>;
    let log: LogOfTest;

    afterEach(async () => {
      await readModel.close();
      await server.stop();
    });
    leavesNothingOpen();
    beforeEach(async () => {
      server = await MongoServer.start(isAlone ? {} : { replicaSet });
      counted = new Map();
      const telemetry: Telemetry = {
        ...silent,
        count: (name, { command = '' } = {}, by = 1) => {
          const key = `${name} ${command}`;
          counted.set(key, (counted.get(key) ?? 0) + by);
        },
      };
      readModel = await openMongoReadModel({ url: server.url(), telemetry });
      log = new LogOfTest();
    });

    const writerOf = (): GenerationWriter =>
      new GenerationWriter({
        readModel,
        projection: runsProjection,
        generation: 1,
        fence: 1,
        telemetry: silent,
        parking: { of: async () => new Map(), park: async () => undefined },
        endsAtPoison: true,
        skipped: () => new Set(),
        onPassed: () => undefined,
      });
    const requestRun = (n: number): void => void log.add(`run-${n}`, 'RunRequested', request());
    const startRun = (n: number): void =>
      void log.add(`run-${n}`, 'RunStarted', {
        worker: 'worker-1',
        attempt: 1,
        leased_until: '2026-03-01T09:00:30.000Z',
      });
    const rows = () => server.documents('svc', `runs_s${runsProjection.schema}_g1`);
    const before = isAlone ? 'findAndModify _checkpoints' : 'update _checkpoints 1';
    const after = isAlone ? 'update _checkpoints 1' : 'commitTransaction';

    async function fill(): Promise<readonly string[]> {
      server.clearLog();
      const store = storeOf(log.events) as EventStore;
      const filling = new Filling({
        store,
        clock: new VirtualClock(),
        telemetry: silent,
        batchSize: BATCH,
        writer: writerOf(),
      });
      expect(await filling.run(new AbortController().signal)).to.equal(true);
      return loggedCommands(server);
    }

    it('of a fill are three for a batch of 4,000 documents', async () => {
      for (let n = 0; n < 10_000; n += 1) requestRun(n);
      const batch = (size: number) => [
        'find _checkpoints',
        `insert rows ${size}`,
        'update _checkpoints 1',
      ];
      expect(await fill()).to.deep.equal([
        'update _checkpoints 1',
        'find _checkpoints',
        ...[4_000, 4_000, 2_000].flatMap(batch),
        'createIndexes rows',
        'update _checkpoints 1',
      ]);
      expect(rows()).to.have.length(10_000);
    });

    it('of a fill are one more for a batch that changes documents of the batch before', async () => {
      for (let n = 0; n < 5_000; n += 1) {
        requestRun(n);
        if (n >= 1_000) startRun(n - 1_000);
      }
      expect((await fill()).slice(2, -2)).to.deep.equal([
        ...['find _checkpoints', 'insert rows 2500', 'update _checkpoints 1'],
        ...['find _checkpoints', 'insert rows 2000', 'update rows 1000', 'update _checkpoints 1'],
        ...['find _checkpoints', 'insert rows 500', 'update rows 500', 'update _checkpoints 1'],
      ]);
      expect(rows()).to.have.length(5_000);
    });

    it('of a follower are five for a batch of 1,000 events, and four if all its documents are new', async () => {
      for (let n = 0; n < 300; n += 1) requestRun(n);
      await fill();
      const writer = writerOf();
      await writer.open(false);
      const follow = async (): Promise<readonly string[]> => {
        server.clearLog();
        await writer.take(log.events, log.events.at(-1)?.position ?? '');
        return loggedCommands(server);
      };
      for (let n = 300; n < 800; n += 1) {
        requestRun(n);
        startRun(n - 150);
      }
      const both = ['insert rows 500', 'update rows 150'];
      expect(await follow()).to.deep.equal(['find rows', before, ...both, after]);
      for (let n = 1_000; n < 2_000; n += 1) requestRun(n);
      expect(await follow()).to.deep.equal(['find rows', before, 'insert rows 1000', after]);
      startRun(1_000);
      expect(await follow()).to.deep.equal(['find rows', before, 'update rows 1', after]);
      await writer.close();
    });

    it('are counted by name, and so are the documents that they write', async () => {
      for (let n = 0; n < 10; n += 1) requestRun(n);
      for (let n = 0; n < 10; n += 1) startRun(n);
      counted.clear();
      await fill();
      const writer = writerOf();
      await writer.open(false);
      for (let n = 10; n < 15; n += 1) requestRun(n);
      await writer.take(log.events, log.events.at(-1)?.position ?? '');
      await writer.close();
      const expected = new Map<string, number>();
      const add = (key: string, by: number): void => {
        if (by > 0) expected.set(key, (expected.get(key) ?? 0) + by);
      };
      for (const { command, body } of server.log) {
        const isNamed = (countedCommands as readonly string[]).includes(command);
        add(`mongodb_commands_total ${isNamed ? command : 'other'}`, 1);
        const written = body['documents'] ?? body['updates'] ?? body['deletes'] ?? [];
        const isOne = command === 'findAndModify';
        add('mongodb_documents_total ', isOne ? 1 : (written as readonly unknown[]).length);
      }
      // `hello`, which the stand-in leaves out of its log.
      counted.delete('mongodb_commands_total other');
      expect([...counted].sort()).to.deep.equal([...expected].sort());
      expect(counted.get('mongodb_commands_total insert')).to.equal(2);
    });

    it('of a list are four, and page and total are read at the same time', async () => {
      for (let n = 0; n < 30; n += 1) requestRun(n);
      await fill();
      await readModel.switchTo(runsProjection, 1);
      server.clearLog();
      const collection = `runs_s${runsProjection.schema}_g1`;
      const page = server.fault({ command: 'find', collection, effect: { kind: 'hold' } });
      const total = server.fault({ command: 'aggregate', collection, effect: { kind: 'hold' } });
      const listed = readModel.list(runsProjection, {
        filters: [{ field: 'trigger', op: 'eq', value: 'schedule' }],
        sort: [],
        limit: 10,
      });
      await Promise.all([page.met, total.met]);
      page.release();
      total.release();
      expect(await listed).to.include({ total: 30, hasMore: true });
      expect(loggedCommands(server)).to.have.members([
        ...['find _checkpoints', 'find rows', 'aggregate rows', 'find _checkpoints'],
      ]);
    });
  });
}

/** A log in pages. */
function storeOf(events: readonly RecordedEvent[]): Pick<EventStore, 'head' | 'subscribe'> {
  const last = events.at(-1)?.position ?? '';
  return {
    head: async () => last,
    async *subscribe({ signal }): AsyncGenerator<SubscriptionMessage> {
      for (let at = 0; at < events.length && !signal.aborted; at += PAGE) {
        yield { kind: 'events', events: events.slice(at, at + PAGE) };
      }
      if (!signal.aborted) yield { kind: 'caught-up', position: last };
    },
  };
}
