import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { dirname, join } from 'node:path';
import { SystemClock } from '../../../app/clock.ts';
import type { Position } from '../../../domain/event-store.ts';
import { load, type CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import {
  dropReplay,
  replaysFold,
  requestReplay,
  type Replay,
} from '../../../domain/operators/replays.ts';
import { parkedKeyCommand } from '../../../domain/operators/projection-commands.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { replayable, replayedAs } from '../../../projections/replays/replay-views.ts';
import { Replayer, type ReplayerOptions } from '../../../projections/replays/replayer.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { reportingTo } from '../../support/reporting-to.ts';
import { eventually } from '../../support/signals.ts';
import { withFillingAfter } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { definition, folded, request, success } from '../recorded.ts';

/** Both kinds of read models, over a harness's log. */
const adapters = {
  embedded: async (harness: ProjectorHarness) => ({
    readModel: harness.readModel,
    close: async (): Promise<void> => undefined,
  }),
  'in MongoDB': async () => {
    const server = await MongoServer.start();
    const readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
    const close = async (): Promise<void> => {
      await readModel.close();
      await server.stop();
    };
    return { readModel, close };
  },
};

/** Makes the data of an event of the log invalid. */
function damage({ viewDirectory }: ProjectorHarness, stream: string, revision: number): void {
  const database = new DatabaseSync(logFile(join(dirname(viewDirectory), 'log')));
  const { changes } = database
    .prepare(
      `UPDATE events SET data = '{}' WHERE revision = ? AND stream = (SELECT id FROM streams WHERE name = ?)`,
    )
    .run(revision, stream);
  database.close();
  expect(changes).to.equal(1);
}

for (const [adapter, open] of Object.entries(adapters)) {
  describe(`views as of a position, ${adapter}`, () => {
    let harness: ProjectorHarness;
    let readModel: ReadModel;
    let close: () => Promise<void>;
    let running: { readonly stop: AbortController; readonly ended: Promise<void> }[] = [];

    beforeEach(async () => {
      harness = await ProjectorHarness.open();
      ({ readModel, close } = await open(harness));
    });
    afterEach(async () => {
      await stop();
      await close();
      await harness.close();
    });

    function start(
      over: ReadModel = readModel,
      reporting: Partial<Pick<ReplayerOptions, 'tell' | 'telemetry'>> = {},
    ): void {
      const stopping = new AbortController();
      const replayer = new Replayer({
        store: harness.store,
        readModel: over,
        clock: new SystemClock(),
        telemetry: silent,
        fence: running.length + 1,
        tell: async () => undefined,
        ...reporting,
      });
      running.push({ stop: stopping, ended: replayer.run(stopping.signal) });
    }
    async function stop(): Promise<void> {
      for (const each of running) each.stop.abort();
      await Promise.all(running.map(({ ended }) => ended));
      running = [];
    }
    const context = (): CommandContext => {
      const now = Date.now();
      const id = newId(now);
      return { commandId: id, actor: 'agent-1', source: 'test', correlationId: id, now };
    };
    async function order(
      name: string,
      until: Position,
      views = replayable.map((each) => each.name),
    ): Promise<void> {
      const wish = { name, until, at: '2026-03-01T09:00:00.000Z', views, rate: null };
      await requestReplay(harness.store, { ...wish, keepFor: 60_000 }, context());
    }
    async function known(name: string): Promise<Replay | undefined> {
      return (await load(harness.store, streams.replays(), replaysFold)).state.known.get(name);
    }
    const ready = (name: string): Promise<void> =>
      eventually(async () => ((await known(name))?.documents ?? null) !== null);

    function addRun(id: string): void {
      harness.log.add(`run-${id}`, 'RunRequested', request());
      harness.log.add(`run-${id}`, 'RunStarted', {
        worker: 'w',
        attempt: 1,
        leased_until: '2026-03-01T09:00:00.000Z',
      });
      harness.log.add(`run-${id}`, 'RunSucceeded', success());
    }
    /** A log with a position at which one run has ended and one has begun. */
    async function seed(): Promise<Position> {
      const schedule = { anchor: '2026-03-01T08:00:00.000Z', next_fire_at: null };
      harness.log.add('task-1', 'TaskCreated', { definition: definition(), ...schedule });
      addRun('1');
      harness.log.add('run-2', 'RunRequested', request());
      const position = await harness.append();
      addRun('3');
      harness.log.add('task-1', 'TaskPaused', { by_failures: false });
      await harness.append();
      return position;
    }
    /** Expects that each view equals the log up to a position, folded in memory. */
    async function expectFolded(name: string, until: Position): Promise<void> {
      const all = await harness.store.readAll('', 1_000);
      const events = all.filter(({ position }) => position <= until);
      for (const projection of replayable) {
        const query = { filters: [], sort: [], limit: 1_000 };
        const found = await readModel.find(replayedAs(projection, name), query);
        const kept = new Map(found.map(({ key, document }) => [key, document]));
        expect(kept, projection.name).to.deep.equal(new Map(folded(projection, events)));
      }
    }

    it('contain what the log contained up to it', async () => {
      const position = await seed();
      start();
      await order('then', position);
      await order('now', await harness.store.head());
      await ready('then');
      await ready('now');
      await expectFolded('then', position);
      expect((await known('then'))?.documents).to.include({ runs: 2, tasks: 1 });
      expect((await known('now'))?.documents).to.include({ runs: 3, tasks: 1 });
    });

    it('are built although their progress cannot be reported, which is logged until it can', async () => {
      const position = await seed();
      const lines: string[] = [];
      const say = (message: string): void => void lines.push(message);
      let calls = 0;
      const tell = async (): Promise<void> => {
        calls += 1;
        if (calls === 1) throw new Error('refused');
      };
      start(readModel, { tell, telemetry: reportingTo({ warn: say, error: say, info: say }) });
      await order('then', position);
      await ready('then');
      await expectFolded('then', position);
      const message = 'could not report the progress of a replay; retrying';
      expect(lines.filter((line) => line.includes(message))).to.deep.equal([
        message,
        `succeeded again after: ${message}`,
      ]);
    });

    it('leave out what an operator has skipped in the live view', async () => {
      const runs = runsProjection as unknown as Projection;
      addRun('0');
      harness.start([runs], { readModel });
      await harness.reached(runs, await harness.append());
      await harness.stop();
      addRun('1');
      const position = await harness.append();
      damage(harness, 'run-1', 1);
      await harness.reopenLog();
      const projector = harness.start([runs], { readModel });
      const { schema } = runsProjection;
      const parked = (): number | undefined => projector.status()[0]?.parked;
      await eventually(() => parked() === 1);
      start();
      await order('before', position, ['runs']);
      await eventually(async () => (await known('before'))?.error !== null);
      expect((await known('before'))?.error).to.match(/cannot fold RunStarted of run-1 /);

      const key = { name: 'runs', schema, store: harness.store, context: context() };
      await parkedKeyCommand(key, { version: 1, key: '1', order: 'skip' });
      await eventually(() => parked() === 0);
      await order('after', position, ['runs']);
      await ready('after');
      const found = await readModel.get(replayedAs(runsProjection, 'after'), '1');
      expect(found?.document).to.deep.include({ state: 'succeeded', started_at: null });
      expect((await known('before'))?.documents).to.equal(null);
    });

    it('are completed by the next projector, and discarded when dropped', async () => {
      const position = await seed();
      await order('then', position);
      let open = (): void => undefined;
      const gate = new Promise<void>((resolve) => (open = resolve));
      // This projector stops there, as if it had been killed.
      start(withFillingAfter(readModel, gate));
      start();
      await ready('then');
      await expectFolded('then', position);
      await dropReplay(harness.store, 'then', context());
      await eventually(async () => (await known('then')) === undefined);
      for (const projection of replayable) {
        const view: Projection = replayedAs(projection, 'then');
        expect(await readModel.generations(view)).to.deep.equal([]);
        expect(await readModel.liveGeneration(view)).to.equal(null);
      }
      open();
    });
  });
}
