import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import type { EventStore, StreamAppend } from '../../../domain/event-store.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { request, success } from '../../projections/recorded.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { faultsOfViews } from '../view-checks.ts';
import { longVersions } from '../../support/left-out.ts';

/** `SVC_TEST_LONG=1`: more runs, and a kill after every few of them. */
const long = longVersions();
const RUNS = long ? 3_000 : 600;
const DEATHS = long ? 5 : 1;
const DAY = 86_400_000;

describe('a retention whose scheduler is killed', function () {
  this.timeout(180_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let store: EventStore;
  before(() => buildService());
  beforeEach(async () => {
    const codec = createEventCodec();
    store = await openSqliteEventStore({ directory: directory(), codec, telemetry: silent });
  });
  afterEach(() => store.close());

  /** Runs that ended three days ago. */
  async function seed(): Promise<void> {
    const now = Date.now() - 3 * DAY;
    const appends = Array.from({ length: RUNS }, (): StreamAppend => {
      const id = newId(now);
      const leased_until = toIso(now + 60_000);
      const started_at = toIso(now);
      const events: readonly DomainEvent[] = [
        { type: 'RunRequested', data: request({ task_id: newId(now), created_by: id }) },
        { type: 'RunStarted', data: { worker: 'w', attempt: 1, leased_until } },
        { type: 'RunSucceeded', data: success({ task_id: id, started_at }) },
      ];
      const base = { actor: 'service', source: 'test', correlationId: id };
      const context = { ...base, commandId: id, now };
      const stream = streams.run(id);
      return { stream, events: toNewEvents(stream, events, context), expected: 'none' };
    });
    await store.appendInOrder(appends);
  }

  async function removed(): Promise<number> {
    const events = await store.readStream(streams.retention());
    return events.reduce(
      (n, each) => n + (each.type === 'RecordsRemoved' ? each.data.records : 0),
      0,
    );
  }

  it('resumes where it stopped, counts each run once, and does not change the statistics', async () => {
    await seed();
    const settings = { SVC_DATA_DIR: directory(), SVC_RETAIN_RUNS_DAYS: '1', SVC_RATE_LIMIT: '0' };
    const api = await ServiceProcess.start({ ...settings, SVC_ROLES: 'api,projector' });
    const client = api.client(await signIn(api.client(), credentialsIn(directory())));
    const figures = async (): Promise<unknown> => {
      const { json } = await client.get('/stats/summary?days=7');
      return json;
    };
    const before = await figures();
    expect((await client.get('/runs')).at('total')).to.equal(RUNS);
    const limits = { limitMs: 60_000 };
    for (let deaths = 0; deaths < DEATHS; deaths += 1) {
      const sofar = await removed();
      const scheduler = await ServiceProcess.start({ ...settings, SVC_ROLES: 'scheduler' });
      await eventually(async () => (await removed()) > sofar, limits);
      // Halfway, unless a busy machine let it finish first.
      await scheduler.kill();
    }
    const last = await ServiceProcess.start({ ...settings, SVC_ROLES: 'scheduler' });
    await eventually(async () => (await client.get('/runs')).at('total') === 0, limits);
    await eventually(async () => (await removed()) === RUNS, limits);
    expect(await figures()).to.deep.equal(before);
    expect((await last.terminate()).code).to.equal(0);
    expect((await api.terminate()).code).to.equal(0);
    expect(await faultsOfViews(directory())).to.deep.equal([]);
    expect(await removed()).to.equal(RUNS);
  });
});
