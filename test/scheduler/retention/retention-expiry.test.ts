import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { Retention } from '../../../scheduler/retention/retention.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { ProjectorHarness } from '../../projections/projector-harness.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const BEGIN = Date.parse('2026-03-01T08:00:00.000Z');

/** A clock that is set by hand, whose sleeps return at once. */
class SetClock extends QuickClock {
  time = BEGIN;
  override now(): number {
    return this.time;
  }
}

describe('the retention of records that expire', () => {
  let harness: ProjectorHarness;
  let coordination: Coordination;
  const closing: (() => Promise<void>)[] = [];
  const clock = new SetClock();

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    const directory = await makeTemporaryDirectory();
    coordination = await openSqliteCoordination({ directory: directory.path, telemetry: silent });
    closing.push(
      () => harness.close(),
      () => coordination.close(),
      () => directory.remove(),
    );
    clock.time = BEGIN;
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const retention = (): Retention =>
    new Retention({
      store: harness.store,
      coordination,
      telemetry: silent,
      clock,
      name: 'test',
      leadership: { leads: true, fence: 1 },
      limits: { runs: null, deliveries: null, refusals: null, sessions: DAY, requests: DAY },
    });

  /** For some days, each hour a session that lasts ten days, and an idempotency record that lasts one day. */
  async function seed(days: number): Promise<void> {
    const { log } = harness;
    for (let hour = 0; hour < days * 24; hour += 1) {
      const at = BEGIN + hour * HOUR;
      log.add(`session-${String(hour)}`, 'SessionStarted', {
        agent_id: 'agent-1',
        refresh_id: 'r',
        credentials_revision: null,
        expires_at: toIso(at + 10 * DAY),
      });
      log.add(`idem-${String(hour)}`, 'CommandReceived', {
        agent_id: 'agent-1',
        request_hash: 'h',
        method: 'POST',
        path: '/tasks',
        expires_at: toIso(at + DAY),
      });
      log.pass(HOUR - 2000);
    }
    await harness.append();
  }

  async function left(prefix: string): Promise<number> {
    const { streams } = await harness.store.listStreams({ prefix, limit: 1000 });
    const lengths = await Promise.all(
      streams.map(async ({ stream }) => (await harness.store.readStream(stream)).length),
    );
    return lengths.filter((length) => length > 0).length;
  }

  for (const [how, always] of [
    ['in one process', retention],
    ['in a new process each time', null],
  ] as const) {
    it(`removes them ${how}, every six hours, once the set time has passed since expiry`, async () => {
      await seed(14);
      const kept = always?.() ?? null;
      const { signal } = new AbortController();
      for (; clock.time < BEGIN + 14 * DAY; clock.time += 6 * HOUR) {
        await (kept ?? retention()).pass(signal);
      }
      // Records of the last eleven or two days are not due for removal yet. Removal may take another day and a pass.
      expect(await left('session-')).to.be.within(11 * 24, 12 * 24 + 6);
      expect(await left('idem-')).to.be.within(2 * 24, 3 * 24 + 6);
    });
  }
});
