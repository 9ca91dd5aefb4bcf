import { expect } from 'chai';
import { Supervisor } from '../../../app/roles/supervisor.ts';
import { createHealth } from '../../../app/watching/health.ts';
import type { Stores } from '../../../app/stores.ts';
import { decorate } from '../../../domain/decorate.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { newId } from '../../../domain/ids.ts';
import { holdCommand } from '../../../domain/operators/operations.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { addTask } from '../archive/small-log.ts';

/** Works on embedded stores in a folder, with the test's own clock. */
async function onStores(
  directory: string,
  work: (stores: Stores, clock: VirtualClock) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock();
  const shared = { directory, telemetry: silent };
  const store = await openSqliteEventStore({ ...shared, codec: createEventCodec() });
  const readModel = await openSqliteReadModel(shared);
  const coordination = await openSqliteCoordination(shared);
  const opened = [store, readModel, coordination];
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((each) => each.close()));
  };
  const stores = {
    store,
    readModel,
    coordination,
    notices: null,
    close,
    refusal: () => null,
    warmUp: async () => {},
  };
  try {
    await work(stores, clock);
  } finally {
    await close();
  }
}

type Check = Readonly<Record<string, unknown>>;

/** Reads one check of `/health` without caching. */
function lookingAt(
  wanted: string,
  stores: Stores,
  clock: VirtualClock,
): () => Promise<Check | undefined> {
  const supervisor = new Supervisor(clock, silent);
  const about = { version: '0', instance: '1', started: () => true };
  const health = createHealth({ stores, clock, supervisor, ...about });
  return async () => {
    const { body } = await health.report();
    const { checks } = body as { readonly checks: readonly Check[] };
    return checks.find(({ name }) => name === wanted);
  };
}

describe('the health of the scheduler', () => {
  const directory = useTemporaryDirectory();

  it('reports a hold even if the name of its holder cannot be read', async () => {
    await onStores(directory(), async (stores, clock) => {
      const actor = newId(clock.now());
      const commandId = newId(clock.now());
      await holdCommand(stores.store, 'the database is being moved', {
        commandId,
        actor,
        source: 'test',
        correlationId: commandId,
        now: clock.now(),
      });
      const store = decorate(stores.store, {
        readStream: (stream, part) =>
          stream === streams.agent(actor)
            ? Promise.reject(new EventStoreError('CORRUPT_EVENT', 'cannot be read'))
            : stores.store.readStream(stream, part),
      });
      const check = await lookingAt('scheduler', { ...stores, store }, clock)();
      expect(check).to.include({ status: 'degraded' });
      expect(check?.['hold']).to.include({ by: actor, by_name: null });
    });
  });
});

describe('the health of the workers', () => {
  const directory = useTemporaryDirectory();

  it('reports that no process has had a free slot for a minute, and who holds the slots', async () => {
    await onStores(directory(), async (stores, clock) => {
      const since = new Date(clock.now()).toISOString();
      const held = { task_id: newId(0), created_by: newId(0), runs: 4, since, run_id: newId(0) };
      const slots = { slots: 4, taken: 4, full_since: since, holders: [held] };
      const beat = (id: string, more: object): Promise<void> =>
        stores.coordination.heartbeat(id, { roles: ['worker'], ...more }, 3_600_000);
      await beat('one', { slots });
      await beat('two', { slots: { ...slots, taken: 3, full_since: null, holders: [] } });
      // No projector runs, so there is no view: nine runs wait, and the task is unknown.
      const readModel = {
        ping: () => Promise.resolve(),
        count: () => Promise.resolve(9),
        get: () => Promise.resolve(null),
      } as unknown as Stores['readModel'];
      const look = lookingAt('workers', { ...stores, readModel }, clock);
      await clock.advance(60_000);
      expect(await look()).to.include({ status: 'healthy' });
      await beat('two', { slots });
      const check = await look();
      expect(check).to.include({ status: 'degraded', alive: 2 });
      expect(check?.['message']).to.include(`all slots (8) are taken, most by ${held.task_id}`);
      expect(check?.['slots']).to.deep.include({ slots: 8, full_since: since });
    });
  });
});

describe('the health of the projections', () => {
  const directory = useTemporaryDirectory();

  it('is not affected by two concurrent checks, and is unhealthy if no view advances for a while', async () => {
    await onStores(directory(), async (stores, clock) => {
      const { store, coordination } = stores;
      await addTask(store, clock.now() - 60_000);
      await coordination.heartbeat('one', { roles: ['projector'] }, 3_600_000);
      const check = lookingAt('projections', stores, clock);
      const look = async (): Promise<unknown> => (await check())?.['status'];
      expect(await Promise.all([look(), look()])).to.deep.equal(['degraded', 'degraded']);
      await clock.advance(9_000);
      expect(await look()).to.equal('degraded');
      await clock.advance(1_000);
      expect(await look()).to.equal('unhealthy');
    });
  });
});
