import { expect } from 'chai';
import { Going } from '../../../app/roles/going.ts';
import { createHealth } from '../../../app/watching/health.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { addTask } from '../archive/small-log.ts';

describe('the health of the projections', () => {
  const directory = useTemporaryDirectory();

  it('is not bad because two look at the same moment, and is where nothing moves for a while', async () => {
    const clock = new VirtualClock();
    const shared = { directory: directory(), telemetry: silent };
    const store = await openSqliteEventStore({ ...shared, codec: createEventCodec() });
    const readModel = await openSqliteReadModel(shared);
    const coordination = await openSqliteCoordination(shared);
    const opened = [store, readModel, coordination];
    const close = async (): Promise<void> => {
      await Promise.all(opened.map((each) => each.close()));
    };
    const stores = {
      ...{ store, readModel, coordination, notices: null, close },
      refusal: () => null,
      warmUp: async () => {},
    };
    try {
      await addTask(store, clock.now() - 60_000);
      await coordination.heartbeat('one', { roles: ['projector'] }, 3_600_000);
      const going = new Going(clock, silent);
      const health = createHealth({
        stores,
        clock,
        going,
        version: '0',
        instance: '1',
        started: () => true,
      });
      const look = async (): Promise<unknown> => {
        const { body } = await health.report();
        const { checks } = body as { readonly checks: readonly Record<string, unknown>[] };
        return checks.find(({ name }) => name === 'projections')?.['status'];
      };
      expect(await Promise.all([look(), look()])).to.deep.equal(['degraded', 'degraded']);
      await clock.advance(9_000);
      expect(await look()).to.equal('degraded');
      await clock.advance(1_000);
      expect(await look()).to.equal('unhealthy');
    } finally {
      await close();
    }
  });
});
