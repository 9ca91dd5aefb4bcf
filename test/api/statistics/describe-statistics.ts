import { expect } from 'chai';
import { toIso, type Instant } from '../../../domain/clock.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { request } from '../../projections/recorded.ts';
import type { OpenStores } from '../../support/api-stores.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { agentIn } from '../namespaces/agent-in.ts';
import { plainTask } from '../plain-task.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Given {
  readonly task: string;
  readonly at: Instant;
  readonly took?: number;
  readonly error?: string;
  readonly namespace?: string;
}

interface Counted {
  readonly total_runs: number;
  readonly failed_runs: number;
  readonly start: string;
  readonly date?: string;
}

interface ErrorItem {
  readonly id: string;
  readonly error: string;
  readonly count: number;
  readonly counts: readonly number[];
  readonly example: string;
}

/** Tests statistics by hour and day, by task and by error, over a pair of stores. */
export function describeStatistics(title: string, openStores: OpenStores | undefined): void {
  describe(`statistics, ${title}`, () => {
    const api = useRunningApi({}, openStores);
    /** The start of the day before yesterday, UTC. */
    let past: Instant;
    /** The present, to the quarter of an hour. */
    let now: Instant;
    let north: SignedIn;
    let one: string;
    let other: string;
    let gone: string;
    let away: string;
    const last = { run: '' };

    before(async () => {
      const { admin } = api();
      expect((await admin.client.post('/namespaces', { name: 'north' })).status).to.equal(201);
      north = await agentIn(api(), 'north');
      now = Math.floor(api().clock.now() / (15 * MINUTE)) * 15 * MINUTE;
      past = Math.floor(now / DAY) * DAY - 2 * DAY;
      const make = async ({ id, client }: SignedIn): Promise<string> =>
        (await client.post('/tasks', plainTask(id))).textAt('id');
      [one, other, gone] = [await make(admin), await make(admin), await make(admin)];
      away = await make(north);
      await end({ task: one, at: past + 18 * HOUR + 20 * MINUTE, took: 1000 });
      await end({ task: one, at: past + 18 * HOUR + 40 * MINUTE, took: 3000 });
      await end({ task: other, at: now - 3 * HOUR, took: 60_000 });
      await end({ task: one, at: now - 5 * HOUR, error: 'order 1234567 is unknown' });
      await end({ task: other, at: now - 4 * HOUR, error: 'order 7654321 is unknown' });
      last.run = await end({ task: one, at: now - 50 * MINUTE, error: 'order 5 is unknown' });
      await end({ task: one, at: now - 50 * MINUTE + 1, error: 'responded with 503' });
      await end({ task: other, at: now - 30 * MINUTE });
      await end({ task: gone, at: now - 40 * MINUTE, error: 'it broke' });
      expect((await admin.client.post(`/tasks/${gone}/cancel`)).status).to.equal(200);
      const hidden = { task: away, at: now - 50 * MINUTE, namespace: 'north' };
      await end({ ...hidden, error: 'a secret of the north' });
      for (let n = 0; n < 3; n += 1) await skip(other);
    });

    const put = async (at: Instant, events: readonly DomainEvent[]): Promise<string> => {
      const run = newId(at);
      const stream = streams.run(run);
      const context = { commandId: newId(at), actor: 'service', source: 'test', now: at };
      await api().store.append(
        stream,
        toNewEvents(stream, events, { ...context, correlationId: run }),
        'any',
      );
      return run;
    };

    /** A run that has ended. @returns its id */
    const end = ({ task: task_id, at, took = 1000, error, namespace }: Given): Promise<string> => {
      const place = namespace === undefined ? {} : { namespace };
      const ended = { task_id, ...place, started_at: toIso(at - took), attempt: 1, steps: [] };
      const run_at = toIso(at - took);
      const asked = request({ task_id, ...place, created_by: api().admin.id, run_at });
      const lease = { worker: 'w', attempt: 1, leased_until: toIso(at) };
      return put(at, [
        { type: 'RunRequested', data: asked },
        { type: 'RunStarted', data: lease },
        error === undefined
          ? { type: 'RunSucceeded', data: { ...ended, output: {} } }
          : { type: 'RunFailed', data: { ...ended, error, step: null, output: {} } },
      ]);
    };

    const skip = (task_id: string): Promise<string> => {
      const about = { task_id, task_revision: 0, created_by: api().admin.id, trigger: 'schedule' };
      const data = { ...about, scheduled_for: null, priority: 5, reason: 'overlap' } as const;
      const skipped = { ...data, trigger: 'schedule', because_of: null } as const;
      return put(now - 20 * MINUTE, [{ type: 'RunSkipped', data: skipped }]);
    };

    const read = async (path: string, agent = api().admin): Promise<ReceivedResponse> => {
      const after = await api().store.head();
      const answer = await agent.client.get(
        `${path}${path.includes('?') ? '&' : '?'}after=${after}`,
      );
      expect(answer.status, answer.text).to.equal(200);
      return answer;
    };

    const nonempty = (answer: ReceivedResponse, field: string): readonly Counted[] =>
      (answer.at(field) as readonly Counted[]).filter(({ total_runs }) => total_runs > 0);

    const orderOf = async (query: string, agent = api().admin): Promise<readonly unknown[]> =>
      ((await read(`/stats/tasks?${query}`, agent)).at('items') as { task_id: string }[]).map(
        ({ task_id }) => task_id,
      );

    it('give UTC days unless another zone is requested', async () => {
      const days = nonempty(await read(`/task/${one}/stats?days=4`), 'by_day');
      expect(days[0]).to.include({ start: toIso(past), total_runs: 2 });
    });

    it('give the days of a zone that differs from UTC by half an hour', async () => {
      const answer = await read(`/task/${one}/stats?days=4&timezone=Asia/Kolkata`);
      expect(answer.at('timezone')).to.equal('Asia/Kolkata');
      const [before, after] = nonempty(answer, 'by_day');
      expect(before).to.include({ start: toIso(past - 5.5 * HOUR), total_runs: 1 });
      expect(before?.date).to.equal(toIso(past).slice(0, 10));
      expect(after?.start).to.equal(toIso(past + 18.5 * HOUR));
      expect(answer.at('total_runs')).to.equal(5);
    });

    it('give the hours of a zone that differs from UTC by a quarter of an hour', async () => {
      const path = `/task/${one}/stats?days=4&timezone=Asia/Kathmandu&interval=hour`;
      const [before, after] = nonempty(await read(path), 'by_hour');
      const start = past + 18 * HOUR + 15 * MINUTE;
      expect(before).to.include({ start: toIso(start), total_runs: 2 });
      expect(after?.start).to.not.equal(before?.start);
      expect((await read(`/task/${one}/stats?days=4`)).json).to.not.have.property('by_hour');
    });

    it('cover only the last hours if requested', async () => {
      const answer = await read('/stats/summary?hours=2&interval=hour');
      expect(answer.json).to.include({ period_days: 1, total_runs: 5, failed_runs: 4 });
      expect(answer.at('skipped_runs')).to.equal(3);
      const hourly = nonempty(answer, 'by_hour').reduce((sum, { total_runs: n }) => sum + n, 0);
      expect(hourly).to.equal(5);
    });

    it('group failures with similar errors, latest first', async () => {
      const answer = await read('/stats/errors?hours=24');
      const items = answer.at('items') as readonly ErrorItem[];
      const found = items.map(({ error, count }) => `${String(count)} ${error}`);
      expect(found.slice(0, 2)).to.deep.equal(['1 it broke', '1 responded with 503']);
      // These two failed last at the same time.
      expect(found.slice(2)).to.have.members(['3 order <n> is unknown', '1 a secret of the north']);
      expect(answer.json).to.include({ total: 4, failed_runs: 6, has_more: false });
      const group = items.find(({ count }) => count === 3);
      expect(group?.example).to.match(/^order (1234567|7654321|5) is unknown$/);
      expect(group).to.deep.include({
        first: toIso(now - 5 * HOUR),
        last: toIso(now - 50 * MINUTE),
        last_run_id: last.run,
        tasks: [
          { task_id: one, count: 2 },
          { task_id: other, count: 1 },
        ],
        task_count: 2,
        has_more_tasks: false,
        counts: [],
      });
    });

    it('count the failures of an error by hour, and those of a task', async () => {
      const answer = await read(`/stats/errors?hours=12&interval=hour&task_id=${one}`);
      const group = (answer.at('items') as readonly ErrorItem[]).find(({ count }) => count === 2);
      const starts = answer.at('bucket_starts') as readonly string[];
      expect(group?.counts).to.have.length(starts.length);
      expect(group?.counts.reduce((sum, each) => sum + each, 0)).to.equal(2);
      expect(group).to.include({ last_run_id: null });
    });

    it('rank tasks by failures, runs, time and skipped runs', async () => {
      expect(await orderOf('hours=24&sort=failed')).to.have.members([one, other, gone, away]);
      expect((await orderOf('hours=24&sort=failed'))[0]).to.equal(one);
      expect(await orderOf('hours=24&sort=time&limit=1')).to.deep.equal([other]);
      expect((await orderOf('hours=4&sort=runs')).slice(0, 2)).to.have.members([one, other]);
      expect(await orderOf('hours=24&sort=skipped')).to.deep.equal([other]);
      expect(
        (await read('/stats/tasks?hours=24&sort=skipped')).at('items.0.skipped_runs'),
      ).to.equal(3);
    });

    it('list the tasks whose latest run failed, without canceled ones', async () => {
      const answer = await read('/stats/tasks?hours=24&sort=failing');
      expect(answer.at('total')).to.equal(2);
      const items = answer.at('items') as readonly { task_id: string; failing: boolean }[];
      expect(items.map(({ task_id }) => task_id)).to.have.members([one, away]);
      expect(items.every(({ failing }) => failing)).to.equal(true);
    });

    it('show nothing of another namespace', async () => {
      const errors = (await read('/stats/errors?hours=24', north)).at('items');
      expect((errors as readonly ErrorItem[]).map(({ error }) => error)).to.deep.equal([
        'a secret of the north',
      ]);
      expect(await orderOf('hours=24&sort=failed', north)).to.deep.equal([away]);
      expect(await orderOf('hours=24&sort=failing', north)).to.deep.equal([away]);
      expect(await orderOf('hours=24&sort=skipped', north)).to.deep.equal([]);
      expect((await read('/stats/errors?hours=24&namespace=north')).at('total')).to.equal(1);
    });

    it('reject a zone that does not exist, and say so', async () => {
      for (const path of [
        '/stats/summary',
        '/stats/errors',
        '/stats/tasks',
        `/task/${one}/stats`,
      ]) {
        const answer = await api().admin.client.get(`${path}?timezone=Mars/Olympus`);
        expect(answer.status, path).to.equal(400);
        expect(answer.at('details.field')).to.equal('timezone');
        expect(answer.textAt('message')).to.contain('"Mars/Olympus" is not a time zone');
      }
    });

    it('give the error group by which a redrive selects its failed runs', async () => {
      const items = (await read('/stats/errors?hours=24')).at('items') as readonly ErrorItem[];
      const error_group = items.find(({ count }) => count === 3)?.id;
      const body = { error_group, dry_run: true };
      const answer = await api().admin.client.post('/runs/redrive', body);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.at('details.count')).to.equal(3);
      const bad = await api().admin.client.post('/runs/redrive', { error_group: 'order' });
      expect(bad.at('details.field')).to.equal('error_group');
    });
  });
}
