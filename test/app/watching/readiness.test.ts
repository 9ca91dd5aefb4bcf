import { expect } from 'chai';
import { setMaxListeners } from 'node:events';
import { SystemClock } from '../../../app/clock.ts';
import { Supervisor } from '../../../app/roles/supervisor.ts';
import { createHealth } from '../../../app/watching/health.ts';
import { projections } from '../../../app/projecting/projections.ts';
import type { Stores } from '../../../app/stores.ts';
import { decorate } from '../../../domain/decorate.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import type { HealthCheck } from '../../../observability/health.ts';
import { createProjector } from '../../../projections/projector/projector.ts';
import { ReadModelError } from '../../../projections/read-model.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('readiness', () => {
  const directory = useTemporaryDirectory();
  const telemetry = createTelemetry({ level: 'silent' });
  const clock = new SystemClock();
  let stores: Stores;
  /** Why the log rejects writes. */
  let refusal: string | null;

  beforeEach(async () => {
    const shared = { directory: directory(), telemetry };
    const store = await openSqliteEventStore({ ...shared, codec: createEventCodec() });
    const readModel = await openSqliteReadModel(shared);
    const coordination = await openSqliteCoordination(shared);
    const opened = [store, readModel, coordination];
    const close = async (): Promise<void> => {
      await Promise.all(opened.map((each) => each.close()));
    };
    const warmUp = async (): Promise<void> => {};
    refusal = null;
    stores = {
      store,
      readModel,
      coordination,
      notices: null,
      warmUp,
      close,
      refusal: () => refusal,
    };
  });

  afterEach(() => stores.close());

  it('waits for every view to be built, and names the missing ones', async () => {
    const supervisor = new Supervisor(clock, telemetry);
    const health = createHealth({
      stores,
      clock,
      supervisor,
      version: '0.0.0',
      instance: '1',
      started: () => true,
    });
    const before = await health.ready();
    expect(before.status).to.equal(503);
    expect(JSON.stringify(before.body)).to.include('not built yet: agents, apikeys, tasks, runs');
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const { store, readModel } = stores;
    const projector = createProjector({
      store,
      readModel,
      projections,
      telemetry,
      clock,
      fence: 1,
    });
    const running = projector.run(stop.signal);
    try {
      await eventually(async () => {
        const { status, body } = await health.ready();
        expect(status, JSON.stringify(body)).to.equal(200);
      });
    } finally {
      stop.abort();
      await running;
      await supervisor.end();
    }
  });

  it('reports a silent database at once, and does not query it', async () => {
    const { readModel, coordination } = stores;
    const unasked = (): Promise<never> => new Promise(() => {});
    const ping = (): Promise<void> =>
      Promise.reject(new ReadModelError('UNAVAILABLE', 'no answer within 1900 ms'));
    const silent: Stores = {
      ...stores,
      readModel: decorate(readModel, {
        ping,
        checkpoint: unasked,
        count: unasked,
        find: unasked,
        liveGeneration: unasked,
      }),
      coordination: decorate(coordination, { ping, alive: unasked, recall: unasked }),
    };
    const supervisor = new Supervisor(clock, telemetry);
    const options = { clock, supervisor, version: '0.0.0', instance: '1', started: () => true };
    const health = createHealth({ ...options, stores: silent });
    const statuses = async (answer: Promise<{ readonly body: unknown }>): Promise<object> => {
      const { checks } = (await answer).body as { checks: readonly HealthCheck[] };
      return Object.fromEntries(checks.map(({ name, status }) => [name, status]));
    };
    const database = 'unhealthy';
    expect(await statuses(health.ready())).to.deep.equal({
      database,
      stream_store: 'healthy',
      projections: 'unhealthy',
    });
    expect(await statuses(health.report())).to.deep.equal({
      database,
      stream_store: 'healthy',
      projections: 'unhealthy',
      scheduler: 'unhealthy',
      workers: 'unhealthy',
    });
  });

  it('does not depend on whether the log accepts writes, unlike the health report', async () => {
    const supervisor = new Supervisor(clock, telemetry);
    const health = createHealth({
      stores,
      clock,
      supervisor,
      version: '0.0.0',
      instance: '1',
      started: () => true,
    });
    refusal = 'the event log cannot grow, the disk is full';
    const found = async (answer: Promise<{ readonly body: unknown }>): Promise<unknown> => {
      const { checks } = (await answer).body as { checks: readonly { readonly name: string }[] };
      return checks.find(({ name }) => name === 'stream_store');
    };
    expect(await found(health.ready())).to.include({ status: 'healthy' });
    expect(await found(health.report())).to.include({
      status: 'unhealthy',
      message: `responding, but rejects writes: ${refusal}`,
    });
    refusal = null;
    expect(await found(health.report())).to.include({ status: 'healthy' });
  });
});
