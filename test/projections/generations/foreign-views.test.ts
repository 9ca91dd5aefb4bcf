import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { decorate } from '../../../domain/decorate.ts';
import type { Projection } from '../../../projections/read-model.ts';
import { parkedProjection } from '../../../projections/projector/parking.ts';
import { loadView } from '../../../projections/reading/load-view.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { eventually } from '../../support/signals.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { folded, request, success } from '../recorded.ts';

describe('views of another log', () => {
  let newer: ProjectorHarness;
  let older: ProjectorHarness;
  const clock = new QuickClock();

  beforeEach(async () => {
    newer = await ProjectorHarness.open();
    older = await ProjectorHarness.open();
    addRuns(newer, 'lost', 5);
    const head = await newer.append();
    newer.start([runsProjection]);
    await newer.reached(runsProjection, head);
    await newer.stop();
    addRuns(older, 'kept', 2);
    await older.append();
  });
  afterEach(async () => {
    await newer.close();
    await older.close();
  });

  function addRuns({ log }: ProjectorHarness, name: string, count: number): void {
    for (let i = 0; i < count; i += 1) {
      log.add(`run-${name}-${i}`, 'RunRequested', request());
      log.add(`run-${name}-${i}`, 'RunSucceeded', success());
    }
  }

  async function keysOf(projection: Projection): Promise<readonly string[]> {
    const query = { filters: [], sort: [], limit: 100 };
    return (await newer.readModel.find(projection, query)).map(({ key }) => key).sort();
  }

  /** All events of the older log, including later ones. */
  async function expectMadeAnew(projection: Projection): Promise<void> {
    await eventually(async () => {
      expect(await keysOf(projection)).to.deep.equal(['kept-0', 'kept-1']);
    });
    addRuns(older, 'new', 1);
    await older.append();
    await eventually(async () => {
      expect(await keysOf(projection)).to.deep.equal(['kept-0', 'kept-1', 'new-0']);
    });
    const expected = folded(runsProjection, older.log.events);
    const found = await newer.readModel.get(projection, 'new-0');
    expect(found?.document).to.deep.equal(expected.get('new-0'));
  }

  it('are rebuilt, because they would take none of its events', async () => {
    newer.start([runsProjection], { store: older.store, clock });
    await expectMadeAnew(runsProjection);
  });

  it('are rebuilt if the log has grown beyond them since', async () => {
    for (let i = 2; i < 8; i += 1) addRuns(older, `since-${i}`, 2);
    expect((await older.append()) > (await newer.store.head())).to.equal(true);
    newer.start([runsProjection], { store: older.store, clock });
    const all = folded(runsProjection, older.log.events);
    await eventually(async () => {
      expect(await keysOf(runsProjection)).to.deep.equal([...all.keys()].sort());
    });
    expect(await newer.readModel.landmark(runsProjection)).to.include({ stream: 'run-since-7-1' });
  });

  it('are rebuilt without keys parked at later positions of that log', async () => {
    const fragile: Projection = {
      ...(runsProjection as Projection),
      evolve: () => {
        throw new Error('broken');
      },
    };
    addRuns(newer, 'new', 1);
    await newer.append();
    newer.start([fragile]);
    await eventually(async () => {
      expect(await newer.readModel.count(parkedProjection, [])).to.equal(1);
    });
    await newer.stop();
    newer.start([runsProjection], { store: older.store, clock });
    await eventually(async () => {
      expect(await keysOf(runsProjection)).to.have.length(2);
    });
    for (let i = 2; i < 8; i += 1) addRuns(older, `since-${i}`, 2);
    await older.append();
    addRuns(older, 'new', 1);
    expect((await older.append()) > (await newer.store.head())).to.equal(true);
    const expected = folded(runsProjection, older.log.events);
    await eventually(async () => {
      expect(await keysOf(runsProjection)).to.have.length(15);
    });
    const found = await newer.readModel.get(runsProjection, 'new-0');
    expect(found?.document).to.deep.equal(expected.get('new-0'));
  });

  it('are kept if their last events were truncated from the log', async () => {
    await newer.store.truncate('run-lost-4', 2);
    const projector = newer.start([runsProjection], { clock });
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ state: 'following', version: 1 });
    });
    expect(await keysOf(runsProjection)).to.have.length(5);
  });

  it('are not loaded', async () => {
    for (let i = 2; i < 8; i += 1) addRuns(older, `since-${i}`, 2);
    await older.append();
    const load = (store: EventStore): Promise<unknown> =>
      loadView({ store, readModel: newer.readModel }, runsProjection, [], () => {}).catch(
        (error: unknown) => error,
      );
    expect(await load(older.store)).to.include({ code: 'UNAVAILABLE' });
    expect(await load(newer.store)).to.be.a('string');
  });

  it('are not read in an older shape either', async () => {
    const { schema } = runsProjection;
    const next = { ...(runsProjection as Projection), schema: schema + 1, readsOlder: [schema] };
    newer.start([next], { store: older.store, clock });
    await expectMadeAnew(next);
    expect(await newer.readModel.liveGeneration(runsProjection)).to.equal(null);
  });

  it('are kept if the log only seems shorter for a short time', async () => {
    let told = 0;
    const late = decorate(newer.store, {
      reaches: (position) => ((told += 1) <= 3 ? older : newer).store.reaches(position),
    });
    const projector = newer.start([runsProjection], { store: late, clock });
    await eventually(() => {
      expect(projector.status()[0]).to.deep.include({ state: 'following', version: 1 });
    });
    expect(told).to.be.greaterThan(3);
    expect(await keysOf(runsProjection)).to.have.length(5);
    expect(projector.status()[0]).to.include({ handled: 0 });
  });
});
