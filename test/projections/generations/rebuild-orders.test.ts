import { expect } from 'chai';
import { SystemClock } from '../../../app/clock.ts';
import type { Instant } from '../../../domain/clock.ts';
import type { JsonObject } from '../../../domain/json.ts';
import {
  cancelRebuildCommand,
  parkedKeyCommand,
  pauseRebuildCommand,
  resumeRebuildCommand,
  rollbackCommand,
  switchCommand,
} from '../../../domain/operators/projection-commands.ts';
import type { ProjectionStatus } from '../../../projections/projector/projection-status.ts';
import type { Projector } from '../../../projections/projector/projector.ts';
import type { Projection } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { eventually, found } from '../../support/signals.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request, success } from '../recorded.ts';

const leased_until = '2026-03-01T09:00:30.000Z';
const runs = runsProjection as unknown as Projection;

/** A clock that is a day ahead. */
class LaterClock extends SystemClock {
  override now(): Instant {
    return super.now() + 24 * 60 * 60_000 + 1;
  }
}

describe('orders for a view', () => {
  let harness: ProjectorHarness;
  beforeEach(async () => {
    harness = await ProjectorHarness.open();
  });
  afterEach(() => harness.close());

  async function addRuns(from: number, to: number): Promise<string> {
    const { log } = harness;
    for (let n = from; n < to; n += 1) {
      log.add(`run-r${n}`, 'RunRequested', request());
      log.add(`run-r${n}`, 'RunStarted', { worker: 'w', attempt: 1, leased_until });
      log.add(`run-r${n}`, 'RunSucceeded', success());
    }
    return harness.append();
  }
  async function shown(
    projector: Projector,
    look: (status: ProjectionStatus) => void,
  ): Promise<void> {
    await eventually(() => {
      const [status] = projector.status();
      if (status === undefined) throw new Error('no view');
      look(status);
    });
  }
  const generations = (): Promise<readonly number[]> => harness.readModel.generations(runs);
  const count = (): Promise<number> => harness.readModel.count(runs, []);

  it('are carried out by the next projector if the one that received them has stopped', async () => {
    const head = await addRuns(0, 30);
    harness.start([runs]);
    await harness.reached(runs, head);
    await harness.rebuild(runs, { switch: 'manual' });
    await harness.stop();
    const projector = harness.start([runs]);
    await shown(projector, ({ rebuild, version }) => {
      expect(version).to.equal(1);
      expect(rebuild).to.deep.include({ version: 2, state: 'ready', progress: 1 });
    });
    await harness.stop();
    const next = harness.start([runs]);
    await switchCommand(harness.order(runs));
    await shown(next, ({ rebuild, version, previous }) => {
      expect({ version, rebuild }).to.deep.equal({ version: 2, rebuild: null });
      expect(previous?.version).to.equal(1);
    });
    expect(await count()).to.equal(30);
  });

  it('pause a rebuild, also over a restart, and resume it', async () => {
    const head = await addRuns(0, 30);
    harness.start([runs]);
    await harness.reached(runs, head);
    await harness.rebuild(runs, { rate: 1 });
    await pauseRebuildCommand(harness.order(runs));
    await harness.stop();
    const projector = harness.start([runs]);
    await shown(projector, ({ rebuild }) => {
      expect(rebuild).to.deep.include({ version: 2, state: 'paused', rate: 1 });
    });
    await cancelRebuildCommand(harness.order(runs));
    await shown(projector, ({ rebuild }) => expect(rebuild).to.equal(null));
    expect(await generations()).to.deep.equal([1]);
    expect(await harness.rebuild(runs)).to.equal(3);
    await shown(projector, ({ version }) => expect(version).to.equal(3));
    const refused = await resumeRebuildCommand(harness.order(runs)).catch((e: unknown) => e);
    expect(refused).to.have.property('code', 'STATE_CONFLICT');
  });

  it('do not pause a rebuild while nothing can be read', async () => {
    const head = await addRuns(0, 30);
    harness.start([runs]);
    await harness.reached(runs, head);
    await harness.rebuild(runs, { rate: 1 });
    await pauseRebuildCommand(harness.order(runs));
    await harness.stop();
    // As with lost views, or an imported log.
    await harness.readModel.withdraw(runs);
    for (const version of await generations()) await harness.readModel.discard(runs, version);
    const projector = harness.start([runs]);
    await shown(projector, ({ version, rebuild }) => {
      expect({ version, rebuild }).to.deep.equal({ version: 2, rebuild: null });
    });
    expect(await count()).to.equal(30);
  });

  it('pause a filled rebuild that waits for its switch', async () => {
    const head = await addRuns(0, 30);
    const projector = harness.start([runs]);
    await harness.reached(runs, head);
    await harness.rebuild(runs, { switch: 'manual' });
    await shown(projector, ({ rebuild }) => expect(rebuild?.state).to.equal('ready'));
    await pauseRebuildCommand(harness.order(runs));
    await shown(projector, ({ rebuild }) => expect(rebuild?.state).to.equal('paused'));
    await resumeRebuildCommand(harness.order(runs));
    await shown(projector, ({ rebuild }) => expect(rebuild?.state).to.equal('ready'));
  });

  it('report how the new generation differs before reads use it', async () => {
    const changing: Projection = {
      ...runs,
      evolve(document, event, key) {
        const after = runs.evolve(document, event, key);
        const isNew = after !== null && isRebuilt;
        if (isNew && key === 'r1') return null;
        return isNew && key === 'r2' ? { ...after, priority: 99 } : after;
      },
    };
    let isRebuilt = false;
    const head = await addRuns(0, 5);
    const projector = harness.start([changing]);
    await harness.reached(runs, head);
    isRebuilt = true;
    await harness.rebuild(changing, { switch: 'manual' });
    await shown(projector, ({ rebuild }) => {
      expect(rebuild?.comparison).to.deep.equal({
        documents_before: 5,
        documents_after: 4,
        compared: 5,
        different: 2,
        complete: true,
        first: [
          { key: 'r1', difference: 'only_before', fields: [] },
          { key: 'r2', difference: 'changed', fields: ['priority'] },
        ],
      });
    });
    expect(await count()).to.equal(5);
    await switchCommand(harness.order(changing));
    await shown(projector, ({ version }) => expect(version).to.equal(2));
    expect(await count()).to.equal(4);
  });

  it('fold events that are far apart in the log, across its pages and write batches', async () => {
    const projector = harness.start([runs]);
    const { log } = harness;
    const many = Array.from({ length: 1_500 }, (_, n) => `run-r${n}`);
    for (const run of many) log.add(run, 'RunRequested', request());
    for (const run of many) log.add(run, 'RunStarted', { worker: 'w', attempt: 1, leased_until });
    await harness.reached(runs, await harness.append());
    for (const run of many) log.add(run, 'RunSucceeded', success());
    await harness.reached(runs, await harness.append());
    await harness.rebuild(runs, { switch: 'manual' });
    await shown(projector, ({ rebuild }) => {
      expect(rebuild?.comparison).to.deep.include({ compared: 1_500, different: 0 });
    });
    await switchCommand(harness.order(runs));
    await shown(projector, ({ version }) => expect(version).to.equal(2));
    const ended = [{ field: 'state', op: 'eq', value: 'succeeded' }] as const;
    expect(await harness.readModel.count(runs, ended)).to.equal(1_500);
  });

  it('roll reads back to the previous generation, which has missed nothing', async () => {
    const head = await addRuns(0, 5);
    const projector = harness.start([runs]);
    await harness.reached(runs, head);
    await harness.rebuild(runs);
    await shown(projector, ({ version }) => expect(version).to.equal(2));
    await harness.reached(runs, await addRuns(5, 8));
    await harness.stop();
    const next = harness.start([runs]);
    await harness.reached(runs, await addRuns(8, 10));
    await rollbackCommand(harness.order(runs));
    await shown(next, ({ version, previous }) => {
      expect({ version, previous: previous?.version }).to.deep.equal({ version: 1, previous: 2 });
    });
    expect(await count()).to.equal(10);
    await rollbackCommand(harness.order(runs));
    await shown(next, ({ version }) => expect(version).to.equal(2));
    expect(await count()).to.equal(10);
  });

  it('roll reads back once if two callers that saw the same version order it', async () => {
    const head = await addRuns(0, 5);
    const projector = harness.start([runs]);
    await harness.reached(runs, head);
    await harness.rebuild(runs);
    await shown(projector, ({ version }) => expect(version).to.equal(2));
    // Both callers have read the version before either gives its order.
    const seen = { expected: 2, found: 2, switched: 2 };
    await rollbackCommand(harness.order(runs), seen);
    await shown(projector, ({ version }) => expect(version).to.equal(1));
    for (const command of [rollbackCommand, switchCommand]) {
      const refused = await command(harness.order(runs), seen).catch((e: unknown) => e);
      expect(refused).to.have.property('code', 'REVISION_MISMATCH');
      expect(refused).to.have.deep.property('details', { expected: 2, actual: 1 });
      expect(refused).to.have.property('message', 'version 1 of runs is live, not 2');
    }
    await harness.reached(runs, await addRuns(5, 6));
    expect(projector.status()[0]?.version).to.equal(1);
  });

  it('can roll reads back for a day, until the previous generation is discarded', async () => {
    const head = await addRuns(0, 5);
    const projector = harness.start([runs]);
    await harness.reached(runs, head);
    await harness.rebuild(runs);
    await shown(projector, ({ version }) => expect(version).to.equal(2));
    expect(await generations()).to.deep.equal([1, 2]);
    await harness.stop();
    const later = new LaterClock();
    const next = harness.start([runs], { clock: later });
    await shown(next, ({ version, previous, state }) => {
      expect({ version, previous, state }).to.deep.equal({
        version: 2,
        previous: null,
        state: 'following',
      });
    });
    expect(await generations()).to.deep.equal([2]);
    const order = harness.order(runs, later.now());
    const refused = await rollbackCommand(order).catch((e: unknown) => e);
    expect(refused).to.have.property('code', 'STATE_CONFLICT');
  });

  describe('with an event that cannot be folded', () => {
    let isFixed = false;
    const touchy: Projection = {
      ...runs,
      evolve(document, event, key) {
        if (!isFixed && key === 'r1' && event.type === 'RunStarted') throw new Error('poison');
        return runs.evolve(document, event, key);
      },
    };
    const documentOf = async (key: string): Promise<JsonObject | undefined> =>
      (await harness.readModel.get(runs, key))?.document;

    beforeEach(() => {
      isFixed = false;
    });

    it('stop a rebuild, say why, and leave the live generation as it is', async () => {
      isFixed = true;
      const head = await addRuns(0, 3);
      const projector = harness.start([touchy]);
      await harness.reached(runs, head);
      isFixed = false;
      await harness.rebuild(touchy);
      await shown(projector, ({ rebuild, version, state }) => {
        expect({ version, state }).to.deep.equal({ version: 1, state: 'following' });
        expect(rebuild).to.deep.include({ version: 2, state: 'failed' });
        expect(rebuild?.detail).to.match(/cannot fold RunStarted of run-r1/);
      });
      await eventually(async () => {
        expect(await generations()).to.deep.equal([1]);
      });
      await harness.stop();
      await shown(harness.start([touchy]), ({ rebuild }) => {
        expect(rebuild?.detail).to.match(/cannot fold RunStarted of run-r1/);
      });
    });

    async function parked(): Promise<Projector> {
      const projector = harness.start([touchy]);
      await harness.reached(runs, await addRuns(5, 6));
      await harness.reached(runs, await addRuns(0, 3));
      await shown(projector, (status) => expect(status.parked).to.equal(1));
      expect(await documentOf('r1')).to.deep.include({ state: 'queued' });
      return projector;
    }

    it('fold a parked key with what followed', async () => {
      const projector = await parked();
      isFixed = true;
      const ask = { version: 1, key: 'r1', order: 'retry' } as const;
      await parkedKeyCommand(harness.order(runs), ask);
      await shown(projector, (status) => expect(status.parked).to.equal(0));
      const { revision: _r1, ...one } = (await documentOf('r1')) ?? {};
      expect(one).to.deep.include({ state: 'succeeded' });
      await harness.stop();
      await shown(harness.start([touchy]), (status) => expect(status.parked).to.equal(0));
    });

    it('leave a key parked that still cannot be folded', async () => {
      const projector = await parked();
      const ask = { version: 1, key: 'r1', order: 'retry' } as const;
      const { position } = await parkedKeyCommand(harness.order(runs), ask);
      await eventually(async () => {
        const [settled] = await harness.store.readStream('projection-runs', {
          direction: 'backwards',
          limit: 1,
        });
        expect(settled?.type).to.equal('ParkedKeySettled');
        expect(settled?.data).to.deep.include({ key: 'r1', error: 'poison' });
        expect((settled?.position ?? '') > (position ?? '')).to.equal(true);
      });
      await shown(projector, (status) => expect(status.parked).to.equal(1));
    });

    it('skip the event, and fold what follows', async () => {
      const projector = await parked();
      const ask = { version: 1, key: 'r1', order: 'skip' } as const;
      await parkedKeyCommand(harness.order(runs), ask);
      await shown(projector, (status) => expect(status.parked).to.equal(0));
      expect(await documentOf('r1')).to.deep.include({ state: 'succeeded' });
    });

    describe('that was skipped', () => {
      let projector: Projector;
      beforeEach(async () => {
        projector = await parked();
        const ask = { version: 1, key: 'r1', order: 'skip' } as const;
        await parkedKeyCommand(harness.order(runs), ask);
        await shown(projector, (status) => expect(status.parked).to.equal(0));
      });

      it('leave it out of later generations too, and report that', async () => {
        await harness.rebuild(touchy, { switch: 'manual' });
        await shown(projector, ({ rebuild }) => {
          expect(rebuild).to.deep.include({ state: 'ready', left_out: 1 });
          expect(rebuild?.comparison).to.deep.include({ different: 0, complete: true });
        });
        await switchCommand(harness.order(touchy));
        await shown(projector, ({ version, parked }) => {
          expect({ version, parked }).to.deep.equal({ version: 2, parked: 0 });
        });
        expect(await documentOf('r1')).to.deep.include({ state: 'succeeded', started_at: null });
      });

      it('leave it out of a view of another shape', async () => {
        await harness.stop();
        const reshaped = { ...touchy, schema: runs.schema + 1 };
        await shown(harness.start([reshaped]), ({ version, state, detail }) => {
          expect({ version, state, detail }).to.deep.equal({
            ...{ version: 1, state: 'following', detail: null },
          });
        });
      });

      it('fold it if a later release can', async () => {
        isFixed = true;
        await harness.rebuild(touchy);
        await shown(projector, ({ version }) => expect(version).to.equal(2));
        expect(await documentOf('r1')).to.deep.include({ state: 'succeeded', attempt: 1 });
      });

      it('stop a rebuild at the next event that cannot be folded', async () => {
        harness.log.add('run-r1', 'RunStarted', { worker: 'w', attempt: 2, leased_until });
        await harness.append();
        await shown(projector, (status) => expect(status.parked).to.equal(1));
        await harness.rebuild(touchy);
        await shown(projector, ({ rebuild }) => {
          expect(rebuild).to.deep.include({ state: 'failed', left_out: 0 });
          expect(rebuild?.detail).to.match(/cannot fold RunStarted of run-r1/);
        });
      });

      it('record the skip once, before reporting that it is done', async () => {
        const events = await found(async () => {
          const said = await harness.store.readStream('projection-runs', { limit: 100 });
          return said.at(-1)?.type === 'ParkedKeySettled' ? said : undefined;
        });
        const skips = events.flatMap((each) => {
          return each.type === 'ParkedEventSkipped' ? [each.data] : [];
        });
        expect(skips).to.have.length(1);
        expect(skips[0]).to.deep.include({
          ...{ schema: runs.schema, version: 1, key: 'r1', stream: 'run-r1', revision: 1 },
          ...{ event_type: 'RunStarted', error: 'poison' },
        });
      });
    });
  });
});
