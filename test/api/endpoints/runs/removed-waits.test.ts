import { expect } from 'chai';
import { toIso, type Instant } from '../../../../domain/clock.ts';
import { tokenHash } from '../../../../domain/ids.ts';
import { silent } from '../../../../observability/telemetry.ts';
import { Retention } from '../../../../scheduler/retention/retention.ts';
import { openSqliteCoordination } from '../../../../stores/sqlite/coordination/coordination.ts';
import { success } from '../../../projections/recorded.ts';
import { QuickClock } from '../../../support/quick-clock.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { eventually } from '../../../support/signals.ts';
import { useTemporaryDirectory } from '../../../support/temporary-directory.ts';
import { waitingRun } from './waiting-run.ts';

const DAY = 86_400_000;

/** A clock that stands still, whose sleeps return at once. */
class LaterClock extends QuickClock {
  readonly #now: Instant;

  constructor(now: Instant) {
    super();
    this.#now = now;
  }

  override now(): number {
    return this.#now;
  }
}

describe('the waits of a run that retention has removed', () => {
  const api = useRunningApi();
  const directory = useTemporaryDirectory();

  const removeOldRuns = async (): Promise<void> => {
    const coordination = await openSqliteCoordination({
      directory: directory(),
      telemetry: silent,
    });
    const off = { deliveries: null, sessions: null, refusals: null, requests: null };
    const retention = new Retention({
      store: api().store,
      coordination,
      telemetry: silent,
      name: 'test',
      clock: new LaterClock(api().clock.now() + 3 * DAY),
      leadership: { leads: true, fence: 1 },
      limits: { ...off, runs: DAY },
    });
    await retention.pass(new AbortController().signal);
    await coordination.close();
  };

  /** The ids of listed approvals, once the view has caught up with the log. */
  const listed = async (): Promise<readonly string[]> => {
    const after = await api().store.head();
    const list = await api().admin.client.get(`/approvals?after=${after}`);
    expect(list.status, list.text).to.equal(200);
    return (list.at('items') as readonly { readonly id: string }[]).map(({ id }) => id);
  };

  const generation = async (): Promise<number> => {
    const { json } = await api().admin.client.get('/projections');
    const all = json['projections'] as readonly { readonly name: string; version: number }[];
    return all.find(({ name }) => name === 'waits')?.version ?? 0;
  };

  it('are neither listed nor found, even in a rebuilt view, while those of other runs are', async () => {
    const { client } = api().admin;
    const approval = { kind: 'approval', message: 'Pay?', on_timeout: 'fail' } as const;
    const token = 'x'.repeat(43);
    const old = await waitingRun(api(), approval);
    const called = await waitingRun(api(), { kind: 'callback', token_hashes: [tokenHash(token)] });
    const open = await waitingRun(api(), approval);
    expect((await client.post(`/approvals/${old.wait}/approve`)).status).to.equal(200);
    expect((await client.post(`/callbacks/${token}`)).status).to.equal(200);
    for (const { task: task_id, stream } of [old, called]) {
      const data = success({ task_id, started_at: toIso(api().clock.now()) });
      await api().append(stream, [{ type: 'RunSucceeded', data }]);
    }
    expect(await listed()).to.have.members([old.wait, open.wait]);
    await removeOldRuns();
    const [removed] = await api().store.readStream(old.stream);
    expect(removed).to.deep.include({ type: 'RunRemoved' });
    const expectGone = async (): Promise<void> => {
      expect(await listed()).to.deep.equal([open.wait]);
      expect((await client.get(`/approvals/${old.wait}`)).status).to.equal(404);
      expect((await client.post(`/approvals/${old.wait}/reject`)).status).to.equal(404);
      expect((await client.post(`/callbacks/${token}`)).status).to.equal(404);
      expect((await client.get(`/approvals/${open.wait}`)).at('state')).to.equal('pending');
    };
    await expectGone();
    const before = await generation();
    const ordered = await client.post('/projections/waits/rebuild');
    expect(ordered.status, ordered.text).to.equal(202);
    await eventually(async () => (await generation()) > before);
    await expectGone();
  });
});
