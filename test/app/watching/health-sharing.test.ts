import { expect } from 'chai';
import { Supervisor } from '../../../app/roles/supervisor.ts';
import { createHealth } from '../../../app/watching/health.ts';
import { decorate } from '../../../domain/decorate.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('a health check', () => {
  const directory = useTemporaryDirectory();

  it('is shared by concurrent callers, and repeated for later ones', async () => {
    const clock = new VirtualClock();
    const given = { directory: directory(), telemetry: silent };
    const log = await openSqliteEventStore({ ...given, codec: createEventCodec() });
    const readModel = await openSqliteReadModel(given);
    const coordination = await openSqliteCoordination(given);
    let pings = 0;
    const store = decorate(log, {
      ping: () => {
        pings += 1;
        return log.ping();
      },
    });
    const stores = {
      store,
      readModel,
      coordination,
      notices: null,
      close: async () => {},
      refusal: () => null,
      warmUp: async () => {},
    };
    try {
      const supervisor = new Supervisor(clock, silent);
      const health = createHealth({
        stores,
        clock,
        supervisor,
        version: '0',
        instance: '1',
        started: () => true,
      });
      for (const ask of [health.report, health.ready]) {
        pings = 0;
        await Promise.all(Array.from({ length: 50 }, ask));
        expect(pings).to.equal(1);
        await ask();
        expect(pings).to.equal(2);
      }
    } finally {
      await Promise.all([log, readModel, coordination].map((each) => each.close()));
    }
  });
});
