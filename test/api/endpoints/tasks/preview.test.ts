import { expect } from 'chai';
import type { SignedIn } from '../../../support/running-api.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

const DAY = 86_400_000;

describe('a preview', () => {
  const api = useRunningApi();
  let admin: SignedIn;
  before(() => {
    admin = api().admin;
  });
  const preview = (body: object) => admin.client.post('/schedules/preview', body);
  const fires = async (body: object): Promise<readonly string[]> => {
    const answer = await preview(body);
    expect(answer.status, answer.text).to.equal(200);
    return (answer.json['fires'] as { at: string }[]).map(({ at }) => at);
  };
  const hourly = { schedule_kind: 'cron', schedule_expr: '0 * * * *' };

  it('shows ten fires from now on by default', async () => {
    const now = api().clock.now();
    const found = await fires(hourly);
    expect(found).to.have.length(10);
    expect(Date.parse(found[0] ?? '')).to.be.within(now, now + 3_600_001);
    expect(Date.parse(found[9] ?? '') - Date.parse(found[0] ?? '')).to.equal(9 * 3_600_000);
  });

  it('shows fires strictly after a past instant', async () => {
    const found = await fires({ ...hourly, from: '2020-01-01T05:00:00Z', count: 2 });
    expect(found).to.deep.equal(['2020-01-01T06:00:00.000Z', '2020-01-01T07:00:00.000Z']);
  });

  it('shows the local time with its offset, and what a clock change moved', async () => {
    const answer = await preview({
      schedule_kind: 'cron',
      schedule_expr: '30 2 * * *',
      timezone: 'Europe/Berlin',
      from: '2026-03-28T00:00:00',
      count: 2,
    });
    expect(answer.json).to.deep.equal({
      schedule_text: 'at 02:30, every day, Europe/Berlin',
      fires: [
        { at: '2026-03-28T01:30:00.000Z', local: '2026-03-28T02:30:00+01:00', note: null },
        {
          at: '2026-03-29T01:30:00.000Z',
          local: '2026-03-29T03:30:00+02:00',
          note:
            '2026-03-29T02:30:00 does not exist in Europe/Berlin, where the clock goes forward: ' +
            'fires by the offset before the change, at 2026-03-29T03:30:00',
        },
      ],
      warnings: [],
    });
  });

  it('anchors a rule without DTSTART at the instant it counts from', async () => {
    const rule = { schedule_kind: 'rrule', schedule_expr: 'FREQ=DAILY;INTERVAL=3' };
    const found = await fires({ ...rule, from: '2026-05-01T10:20:30.400Z', count: 2 });
    expect(found).to.deep.equal(['2026-05-04T10:20:30.000Z', '2026-05-07T10:20:30.000Z']);
  });

  it('ends at its bounds', async () => {
    const bounded = { ...hourly, timezone: 'Asia/Kathmandu', from: '2026-01-01T00:00:00Z' };
    const bounds = { starts_at: '2026-01-02T00:00:00', ends_at: '2026-01-02T02:00:00' };
    expect(await fires({ ...bounded, ...bounds })).to.deep.equal([
      '2026-01-01T18:15:00.000Z',
      '2026-01-01T19:15:00.000Z',
      '2026-01-01T20:15:00.000Z',
    ]);
    expect(await fires({ ...bounded, ...bounds, max_runs: 2 })).to.have.length(2);
  });

  it('shows a thousand fires', async () => {
    expect(await fires({ ...hourly, count: 1000 })).to.have.length(1000);
  });

  it('says why it is empty', async () => {
    const spent = await preview({
      ...hourly,
      ends_at: '2020-01-01T00:00:00Z',
      from: '2026-01-01T00:00:00Z',
    });
    expect(spent.json).to.deep.equal({
      schedule_text: 'every hour, UTC',
      fires: [],
      warnings: ['the schedule has no fire after 2026-01-01T00:00:00.000Z'],
    });
    const event = await preview({ schedule_kind: 'event', schedule_expr: 'orders.*' });
    expect(event.at('schedule_text')).to.equal('when an event on orders.* is published');
    expect(event.at('fires')).to.deep.equal([]);
    expect(event.textAt('warnings.0')).to.contain('orders.*');
  });

  it('warns of what the author of a rule may not have intended', async () => {
    const answer = await preview({
      schedule_kind: 'rrule',
      schedule_expr: 'DTSTART;TZID=America/New_York:20260101T090000\nRRULE:FREQ=DAILY',
      from: '2026-01-01T00:00:00Z',
      count: 1,
    });
    expect(answer.at('fires.0.at')).to.equal('2026-01-01T14:00:00.000Z');
    expect(answer.textAt('warnings.0')).to.contain('America/New_York');
  });

  it('warns that COUNT without DTSTART counts the time at which the rule is set', async () => {
    const from = '2026-05-01T10:20:30.400Z';
    const counted = (schedule_expr: string): ReturnType<typeof preview> =>
      preview({ schedule_kind: 'rrule', schedule_expr, from });
    const answer = await counted('FREQ=DAILY;COUNT=3');
    expect(answer.at('fires')).to.have.length(2);
    expect(answer.textAt('warnings.0')).to.match(/^COUNT=3 counts .* so 2 more follow;/);
    for (const clear of [
      'DTSTART:20260501T110000\nRRULE:FREQ=DAILY;COUNT=3',
      'FREQ=DAILY;BYHOUR=11;COUNT=3',
      'FREQ=DAILY',
    ]) {
      expect((await counted(clear)).at('warnings'), clear).to.deep.equal([]);
    }
  });

  it('rejects an expression with the message of a creation', async () => {
    const fault = { schedule_kind: 'cron', schedule_expr: '0 25 * * *' };
    const refused = await preview(fault);
    const created = await admin.client.post('/tasks', { ...plainTask(admin.id), ...fault });
    expect(refused.status).to.equal(400);
    expect(refused.at('message')).to.equal(created.at('message'));
    expect(refused.at('details')).to.deep.equal(created.at('details'));
  });

  describe('of a task', () => {
    const created = async (fields: object): Promise<string> => {
      const answer = await admin.client.post('/tasks', { ...plainTask(admin.id), ...fields });
      expect(answer.status, answer.text).to.equal(201);
      return answer.textAt('id');
    };

    it('uses the stored schedule and its anchor', async () => {
      const fields = { schedule_kind: 'rrule', schedule_expr: 'FREQ=DAILY;INTERVAL=3' };
      const task_id = await created(fields);
      const { next_run_at } = (await admin.client.get(`/tasks/${task_id}`)).json;
      const later = new Date(api().clock.now() + DAY).toISOString();
      expect((await fires({ task_id, from: later, count: 1 }))[0]).to.equal(next_run_at);
      expect((await fires({ task_id }))[0]).to.equal(next_run_at);
    });

    it('accepts no schedule field in addition to the task', async () => {
      const answer = await preview({ task_id: await created({}), timezone: 'UTC' });
      expect(answer.status).to.equal(400);
      expect(answer.at('details.field')).to.equal('timezone');
    });

    it('is refused for a missing task', async () => {
      const answer = await preview({ task_id: '00000000-0000-7000-8000-000000000000' });
      expect(answer.status).to.equal(404);
      expect(answer.at('details.resource')).to.equal('task');
    });

    it('shows no more than the rest of max_runs', async () => {
      const task_id = await created({ max_runs: 3 });
      const [first = '', second = ''] = await fires({ task_id });
      const data = { nominal: first, run_id: task_id, next_fire_at: second };
      const fired = { ...data, task_revision: 0, fire_count: 1 };
      await api().append(`fires-${task_id}`, [{ type: 'Fired', data: fired }]);
      expect(await fires({ task_id, from: first })).to.have.length(2);
      const from = new Date(Date.parse(first) - 2 * 3_600_000).toISOString();
      expect(await fires({ task_id, from })).to.have.length(4);
      // After a change of the tz database, the rest excludes the fires decided before.
      api().clock.shift(Date.parse(first) - api().clock.now());
      const corrected = { tz_version: '2026a', next_fire_at: second, task_revision: 0 };
      await api().append(`fires-${task_id}`, [
        { type: 'NextFireCorrected', data: { ...corrected, fire_count: 1 } },
      ]);
      expect(await fires({ task_id, from })).to.have.length(4);
    });

    it('no longer reports a snoozed fire that has run', async () => {
      const task_id = await created({});
      const [nominal = '', next_fire_at = ''] = await fires({ task_id });
      await admin.client.post(`/tasks/${task_id}/snooze`, { delay_seconds: 60 });
      expect((await preview({ task_id })).textAt('warnings.0')).to.contain('snoozed');
      const data = { nominal, run_id: task_id, next_fire_at, task_revision: 1, fire_count: 1 };
      await api().append(`fires-${task_id}`, [{ type: 'Fired', data }]);
      expect((await preview({ task_id })).at('warnings')).to.deep.equal([]);
    });

    it('says what prevents it from firing', async () => {
      const task_id = await created({});
      const snoozed = await admin.client.post(`/tasks/${task_id}/snooze`, { delay_seconds: 60 });
      const until = snoozed.textAt('details.next_run_at');
      expect((await preview({ task_id })).textAt('warnings.0')).to.contain(until);
      await admin.client.post(`/tasks/${task_id}/pause`);
      expect((await preview({ task_id })).textAt('warnings.0')).to.contain('paused');
      await admin.client.post(`/tasks/${task_id}/cancel`);
      const canceled = await preview({ task_id });
      expect(canceled.json).to.deep.equal({
        schedule_text: 'every hour, UTC',
        fires: [],
        warnings: ['the task is canceled and will not fire again'],
      });
    });
  });
});
