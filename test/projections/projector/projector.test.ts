import { expect } from 'chai';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../../../domain/json.ts';
import { agentsProjection } from '../../../projections/views/agents.ts';
import type { Projection } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import { topicsProjection } from '../../../projections/views/topics.ts';
import { eventually } from '../../support/signals.ts';
import { notAnswering, ofNewerRelease, withEvents, withWrites } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { definition, folded, request, success } from '../recorded.ts';

const views: readonly Projection[] = [
  agentsProjection,
  tasksProjection,
  runsProjection,
  topicsProjection,
  statisticsProjection,
];
const leased_until = '2026-03-01T09:00:00.000Z';

describe('the projector', () => {
  let harness: ProjectorHarness;

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
  });
  afterEach(() => harness.close());

  function addRun(id: string): void {
    const { log } = harness;
    log.add(`run-${id}`, 'RunRequested', request());
    log.add(`run-${id}`, 'RunStarted', { worker: 'w', attempt: 1, leased_until });
    log.add(`run-${id}`, 'RunSucceeded', success());
  }

  function addRuns(count: number, from = 0): void {
    for (let i = from; i < from + count; i += 1) addRun(`${i}`);
  }

  /** Expects that the view equals the whole log folded in memory. */
  async function expectFolded<D extends JsonObject>(projection: Projection<D>): Promise<void> {
    const expected = folded(projection, harness.log.events);
    const kept = await harness.readModel.find(projection, { filters: [], sort: [], limit: 10_000 });
    const found = new Map(kept.map(({ key, document }) => [key, document]));
    expect(found).to.deep.equal(new Map(expected));
  }

  it('builds missing views from the whole log, then follows it', async () => {
    addRuns(3);
    const before = await harness.append();
    const projector = harness.start(views);
    await harness.reached(runsProjection, before);
    addRuns(3, 3);
    harness.log.add('task-1', 'TaskCreated', {
      definition: definition(),
      anchor: leased_until,
      next_fire_at: null,
    });
    const after = await harness.append();
    for (const view of views) await harness.reached(view, after);
    for (const view of views) await expectFolded(view);
    await eventually(() => {
      const rows = projector.status().map((row) => `${row.name} ${row.state} ${row.caught_up}`);
      expect(rows).to.deep.equal(views.map(({ name }) => `${name} following true`));
    });
    expect(projector.status()[0]).to.deep.equal({
      name: 'agents',
      version: 1,
      schema: 2,
      state: 'following',
      position: after,
      lag_seconds: 0,
      caught_up: true,
      handled: 0,
      parked: 0,
      rebuild: null,
      previous: null,
      detail: null,
    });
  });

  it('continues where it was after a restart', async () => {
    addRuns(5);
    harness.start([runsProjection, statisticsProjection]);
    const before = await harness.append();
    await harness.reached(statisticsProjection, before);
    await harness.reached(runsProjection, before);
    await harness.stop();
    addRuns(2, 5);
    const head = await harness.append();
    const projector = harness.start([runsProjection, statisticsProjection]);
    await harness.reached(statisticsProjection, head);
    await harness.reached(runsProjection, head);
    expect(projector.status().map(({ handled }) => handled)).to.deep.equal([6, 2]);
    await expectFolded(statisticsProjection);
    await expectFolded(runsProjection);
  });

  it('moves the checkpoint of a view past events of other views, also for other processes', async () => {
    harness.start([agentsProjection, runsProjection]);
    addRuns(1);
    const head = await harness.append();
    await harness.reached(agentsProjection, head);
    await eventually(async () => {
      expect(await harness.readModel.checkpoint(agentsProjection)).to.equal(head);
    });
  });

  it('counts nothing twice if the response to a write is lost', async () => {
    let losses = 0;
    const readModel = withWrites(harness.readModel, async (name, batch, go) => {
      await go();
      if (name !== 'statistics' || batch.documents.length === 0 || losses >= 3) return;
      losses += 1;
      throw notAnswering();
    });
    harness.start([statisticsProjection], { readModel });
    for (let i = 0; i < 5; i += 1) {
      addRun(`${i}`);
      await harness.reached(statisticsProjection, await harness.append());
    }
    expect(losses).to.equal(3);
    await expectFolded(statisticsProjection);
  });

  it('does no harm if two of them run at once', async () => {
    harness.start(views);
    harness.start(views);
    for (let i = 0; i < 10; i += 1) {
      addRun(`${i}`);
      await harness.append();
    }
    const head = await harness.store.head();
    await eventually(async () => {
      for (const view of views) {
        expect(await harness.readModel.checkpoint(view)).to.equal(head);
      }
    });
    await expectFolded(runsProjection);
    await expectFolded(statisticsProjection);
  });

  describe('with an event that cannot be folded', () => {
    const touchy: Projection = {
      ...(runsProjection as Projection),
      evolve(document, event, key) {
        if (event.type === 'RunStarted' && key === 'bad') throw new Error('it is poisonous');
        return runsProjection.evolve(document as never, event, key);
      },
    };

    it('parks only its key, also after a restart', async () => {
      const projector = harness.start([touchy]);
      await eventually(() => {
        expect(projector.status()[0]?.state).to.equal('following');
      });
      addRun('bad');
      addRun('good');
      await harness.reached(touchy, await harness.append());
      expect(projector.status()[0]).to.deep.include({ state: 'following', parked: 1 });
      await harness.stop();
      harness.log.add('run-bad', 'RunCancelRequested', {});
      addRun('better');
      const head = await harness.append();
      const again = harness.start([runsProjection]);
      await harness.reached(runsProjection, head);
      expect(again.status()[0]?.parked).to.equal(1);
      const stateOf = async (id: string) =>
        (await harness.readModel.get(runsProjection, id))?.document;
      expect(await stateOf('bad')).to.deep.include({ state: 'queued', revision: 0 });
      expect((await stateOf('good'))?.state).to.equal('succeeded');
      expect((await stateOf('better'))?.state).to.equal('succeeded');
    });

    it('parks its key in the first build too, because there is nothing else to read', async () => {
      addRun('bad');
      addRun('good');
      const head = await harness.append();
      const projector = harness.start([touchy]);
      await harness.reached(touchy, head);
      await eventually(() => {
        expect(projector.status()[0]).to.deep.include({ state: 'following', parked: 1 });
      });
      harness.log.add('run-bad', 'RunCancelRequested', {});
      addRun('better');
      await harness.reached(touchy, await harness.append());
      const stateOf = async (id: string) =>
        (await harness.readModel.get(runsProjection, id))?.document;
      expect(await stateOf('bad')).to.deep.include({ state: 'queued', revision: 0 });
      expect((await stateOf('good'))?.state).to.equal('succeeded');
      expect((await stateOf('better'))?.state).to.equal('succeeded');
    });

    it('stops the build beside a readable older shape, until a rebuild without the fault', async () => {
      harness.start([runsProjection]);
      addRun('bad');
      const head = await harness.append();
      await harness.reached(runsProjection, head);
      await harness.stop();
      let isFixed = false;
      const { schema } = runsProjection;
      const mended: Projection = {
        ...touchy,
        schema: schema + 1,
        readsOlder: [schema],
        evolve: (document, event, key) =>
          (isFixed ? (runsProjection as Projection) : touchy).evolve(document, event, key),
      };
      const projector = harness.start([mended]);
      await eventually(() => {
        expect(projector.status()[0]?.state).to.equal('halted');
      });
      expect(projector.status()[0]?.detail).to.match(/runs cannot fold RunStarted of run-bad/);
      isFixed = true;
      expect(await harness.rebuild(mended)).to.equal(2);
      await harness.reached(mended, head);
      await eventually(() => {
        expect(projector.status()[0]).to.deep.include({ state: 'following', parked: 0 });
      });
      const found = await harness.readModel.get(mended, 'bad');
      expect(found?.document['state']).to.equal('succeeded');
    });

    it('parks an event whose data does not fit its schema, and continues', async () => {
      const store = withEvents(harness.store, (event) =>
        event.stream === 'run-bad' && event.type === 'RunSucceeded'
          ? ({ ...event, data: null, fault: 'data is null' } as never)
          : event,
      );
      const projector = harness.start([runsProjection, statisticsProjection], { store });
      await eventually(() => {
        expect(projector.status()[1]?.state).to.equal('following');
      });
      addRun('bad');
      addRun('good');
      const head = await harness.append();
      await harness.reached(runsProjection, head);
      await harness.reached(statisticsProjection, head);
      expect(projector.status().map(({ parked }) => parked)).to.deep.equal([1, 1]);
      const [day] = await harness.readModel.find(statisticsProjection, {
        filters: [{ field: 'scope', op: 'eq', value: 'all' }],
        sort: [],
        limit: 1,
      });
      expect(day?.document).to.deep.include({ total: 1 });
    });
  });

  it('takes and parks nothing while the log has events of a newer release', async () => {
    let isNewer = false;
    const store = withEvents(harness.store, (event) => {
      if (isNewer) throw ofNewerRelease();
      return event;
    });
    const projector = harness.start([runsProjection], { store });
    addRuns(1);
    await harness.reached(runsProjection, await harness.append());
    isNewer = true;
    addRuns(1, 1);
    const head = await harness.append();
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ state: 'newer_schema', parked: 0 });
    });
    isNewer = false;
    await harness.reached(runsProjection, head);
    expect(projector.status()[0]?.state).to.equal('following');
  });

  it('rebuilds a view beside the live one, which is read and fed until the switch', async () => {
    addRuns(20);
    const projector = harness.start([runsProjection, statisticsProjection]);
    await harness.reached(runsProjection, await harness.append());
    expect(await harness.rebuild(runsProjection)).to.equal(2);
    const refused = await harness.rebuild(runsProjection).catch((error: unknown) => error);
    expect(refused).to.have.property('code', 'STATE_CONFLICT');
    addRuns(5, 20);
    const head = await harness.append();
    await harness.reached(runsProjection, head);
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ version: 2, rebuild: null });
    });
    expect(await harness.readModel.generations(runsProjection)).to.deep.equal([1, 2]);
    addRuns(1, 25);
    await harness.reached(runsProjection, await harness.append());
    await expectFolded(runsProjection);
  });

  it('never lets reads go back during a rebuild', async () => {
    const projector = harness.start([statisticsProjection]);
    addRuns(5);
    await harness.reached(statisticsProjection, await harness.append());
    await harness.rebuild(statisticsProjection);
    let last = '';
    for (let i = 5; projector.status()[0]?.rebuild !== null || i < 15; i += 1) {
      addRun(`${i}`);
      await harness.reached(statisticsProjection, await harness.append());
      const at = await harness.readModel.checkpoint(statisticsProjection);
      expect(at >= last, `${at} is not before ${last}`).to.equal(true);
      last = at;
    }
    await expectFolded(statisticsProjection);
  });

  it('builds a view of a new shape beside the old one', async () => {
    addRuns(2);
    const head = await harness.append();
    harness.start([runsProjection]);
    await harness.reached(runsProjection, head);
    await harness.stop();
    const schema = runsProjection.schema + 1;
    const reshaped: Projection = { ...(runsProjection as Projection), schema };
    const projector = harness.start([reshaped]);
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ state: 'following', schema, version: 1 });
    });
    expect(await harness.readModel.count(reshaped, [])).to.equal(2);
    expect(await harness.readModel.count(runsProjection, [])).to.equal(2);
  });

  it('rebuilds a view whose file was damaged', async () => {
    addRuns(3);
    const head = await harness.append();
    harness.start([runsProjection, statisticsProjection]);
    await harness.reached(statisticsProjection, head);
    await harness.reached(runsProjection, head);
    await harness.stop();
    const files = await readdir(harness.viewDirectory, { recursive: true });
    const damaged = files.filter((file) => /\bruns\b.*(db|sqlite)$/.test(file));
    expect(damaged).to.have.length(1);
    for (const file of damaged) {
      await writeFile(join(harness.viewDirectory, file), 'x'.repeat(50_000));
    }
    const projector = harness.start([runsProjection, statisticsProjection]);
    await eventually(async () => {
      expect(projector.status()[0]).to.deep.include({ state: 'following', position: head });
      await expectFolded(runsProjection);
    });
    await expectFolded(statisticsProjection);
  });

  it('discards what an earlier process left unfinished', async () => {
    addRuns(1);
    const head = await harness.append();
    const options = { generation: 1, bulk: true, fence: 1 };
    const writer = await harness.readModel.openWriter(runsProjection, options);
    const document = { id: 'torn' };
    await writer.write({
      documents: [{ key: 'torn', position: head, document }],
      from: '',
      to: head,
    });
    await writer.close();
    harness.start([runsProjection]);
    await harness.reached(runsProjection, head);
    await expectFolded(runsProjection);
  });
});
