import { expect } from 'chai';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { inKolkata, plainTask } from '../../plain-task.ts';
import { FailedRuns } from '../runs/failed-runs.ts';

const DAY = 86_400_000;
const kolkata = { timezone: 'Asia/Kolkata' } as const;

/** An instant's day in Kolkata, and its neighbours. */
function daysAround(instant: number): [before: string, day: string, after: string] {
  const [before, day, after] = [-DAY, 0, DAY].map((by) => inKolkata(instant + by).slice(0, 10));
  return [before ?? '', day ?? '', after ?? ''];
}

describe('a date without a time, as an upper bound', () => {
  const api = useRunningApi();
  let me: SignedIn;
  before(() => {
    me = api().admin;
  });

  const create = async (fields: object): Promise<string> => {
    const made = await me.client.post('/tasks', { ...plainTask(me.id), ...fields });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  };

  it("includes the whole day in ends_at, in the task's zone, at creation and at a change", async () => {
    const bounds = { starts_at: '2090-12-01', ends_at: '2090-12-01' };
    const id = await create({ ...kolkata, ...bounds });
    const made = await me.client.get(`/tasks/${id}`);
    expect([made.at('starts_at'), made.at('ends_at')]).to.deep.equal([
      '2090-11-30T18:30:00.000Z',
      '2090-12-01T18:29:59.999Z',
    ]);
    const changed = await me.client.put(`/tasks/${id}`, { ends_at: '2090-12-02' });
    expect(changed.at('ends_at')).to.equal('2090-12-02T18:29:59.999Z');
    const inUtc = await me.client.get(`/tasks/${await create({ ends_at: '2090-12-01' })}`);
    expect(inUtc.at('ends_at')).to.equal('2090-12-01T23:59:59.999Z');
    const timed = await me.client.get(`/tasks/${await create({ ends_at: '2090-12-01T00:00' })}`);
    expect(timed.at('ends_at')).to.equal('2090-12-01T00:00:00.000Z');
  });

  it('includes the fires of the last day in a preview', async () => {
    const answer = await me.client.post('/schedules/preview', {
      schedule_kind: 'cron',
      schedule_expr: '0 */8 * * *',
      timezone: 'Europe/Berlin',
      from: '2026-10-24',
      ends_at: '2026-10-25',
    });
    const fires = answer.at('fires') as { local: string }[];
    expect(fires.map(({ local }) => local)).to.deep.equal([
      '2026-10-24T08:00:00+02:00',
      '2026-10-24T16:00:00+02:00',
      '2026-10-25T00:00:00+02:00',
      '2026-10-25T08:00:00+01:00',
      '2026-10-25T16:00:00+01:00',
    ]);
  });

  it('includes the whole day in a backfill, which is refused if the day is not over', async () => {
    const id = await create(kolkata);
    const backfill = (to: string) =>
      me.client.post(`/tasks/${id}/backfill`, { from: '2026-01-01', to, dry_run: true });
    const done = await backfill('2026-01-02');
    expect(done.status, done.text).to.equal(200);
    expect(done.at('details.total')).to.equal(48);
    expect(done.at('details.to')).to.equal('2026-01-02T18:29:59.999Z');
    const [, today] = daysAround(api().clock.now());
    const refused = await backfill(today);
    expect([refused.status, refused.at('details.field')]).to.deep.equal([400, 'to']);
    expect(refused.textAt('details.issue')).to.match(
      /^must not be in the future, got \d{4}-\d\d-\d\dT18:29:59\.999Z$/,
    );
  });

  it('includes the whole day in end_time of runs and redrives', async () => {
    const failed = new FailedRuns(api(), me);
    const id = await create(kolkata);
    const run = (await me.client.post(`/tasks/${id}/run_now`)).textAt('details.run_id');
    await failed.failWith(id, run, []);
    const head = await api().store.head();
    const shown = await me.client.get(`/runs/${run}?after=${head}`);
    const [before, day, after] = daysAround(Date.parse(shown.textAt('started_at')));
    const total = async (span: string): Promise<unknown> =>
      (await me.client.get(`/runs?task_id=${id}&${span}`)).at('total');
    expect(await total(`start_time=${day}&end_time=${day}`)).to.equal(1);
    expect(await total(`end_time=${before}`)).to.equal(0);
    expect(await total(`start_time=${after}`)).to.equal(0);
    const redriven = async (end_time: string): Promise<unknown> => {
      const body = { task_id: id, dry_run: true, end_time };
      const answer = await me.client.post('/runs/redrive', body);
      expect(answer.status, answer.text).to.equal(200);
      return answer.at('details.count');
    };
    expect([await redriven(before), await redriven(day)]).to.deep.equal([0, 1]);
  });

  it('includes all changes of the day in as_of', async () => {
    const id = await create({ ...kolkata, title: 'first' });
    const [before, day] = daysAround(api().clock.now());
    api().clock.shift(2 * DAY);
    const changed = await me.client.put(`/tasks/${id}`, { title: 'second' });
    expect(changed.status, changed.text).to.equal(200);
    const past = await me.client.get(`/tasks/${id}?as_of=${day}`);
    expect(past.at('title')).to.equal('first');
    expect((await me.client.get(`/tasks/${id}?as_of=${before}`)).status).to.equal(404);
  });

  it('is rejected if no zone applies', async () => {
    for (const [path, field] of [
      ['/runs?end_time=2026-01-01', 'end_time'],
      ['/tasks/due?until=2026-01-01', 'until'],
      ['/audit?to=2026-01-01', 'to'],
      [`/agents/${me.id}?as_of=2026-01-01`, 'as_of'],
    ] as const) {
      const answer = await me.client.get(path);
      expect([answer.status, answer.at('details.field')], path).to.deep.equal([400, field]);
      expect(answer.textAt('message')).to.include('has no offset from UTC');
    }
    const body = { dry_run: true, end_time: '2026-01-01' };
    const redrive = await me.client.post('/runs/redrive', body);
    expect([redrive.status, redrive.at('details.field')]).to.deep.equal([400, 'end_time']);
  });
});
