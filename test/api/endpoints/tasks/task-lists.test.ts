import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { openStandIns } from '../../../support/stand-in-stores.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld, minute } from './explaining.ts';

interface Outcome {
  readonly task_id: string;
  readonly runs: readonly { readonly id: string; readonly state: string }[];
  readonly p95_execution_time_seconds: number | null;
}

for (const [title, stores] of [
  ['over the embedded stores', undefined],
  ['over servers', openStandIns],
] as const) {
  describe(`a list of tasks, ${title}`, () => {
    const api = useRunningApi({}, stores);
    let world: ExplainedWorld;
    before(async () => {
      world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
    });

    const outcomesOf = async (...ids: readonly string[]): Promise<readonly Outcome[]> => {
      const query = `ids=${ids.join(',')}&after=${await api().store.head()}`;
      const answer = await world.person.client.get(`/tasks/outcomes?${query}`);
      expect(answer.status, answer.text).to.equal(200);
      return answer.json['items'] as readonly Outcome[];
    };
    const titles = async (query: string): Promise<readonly string[]> => {
      const answer = await world.person.client.get(`/tasks?${query}`);
      expect(answer.status, answer.text).to.equal(200);
      return (answer.json['items'] as { title: string }[]).map((task) => task.title);
    };

    it('has the outcomes of the last 20 runs of each, and how long they take', async () => {
      const task = await world.create({ schedule_expr: '* * * * *' });
      const idle = await world.create();
      const at = world.nextHour;
      for (let n = 0; n < 21; n += 1) {
        const [run = ''] = await world.until(at + n * minute + 20).decide(task);
        await world.work(task, run, n === 20 ? 30 : 2, n === 19 ? 'no paper' : undefined);
      }
      const unknown = newId(0);
      const found = await outcomesOf(idle, task.toUpperCase(), unknown);
      const [busy] = found;
      const states = busy?.runs.map(({ state }) => state);
      expect(states).to.deep.equal(['succeeded', 'failed', ...Array(18).fill('succeeded')]);
      expect(busy?.p95_execution_time_seconds).to.be.closeTo(2, 0.5);
      expect(found.map(({ task_id }) => task_id)).to.deep.equal([task]);
    });

    it('is sorted by title or by the next run, page by page', async () => {
      const tag = 'sorted';
      const fields = { tags: [tag], schedule_kind: 'once' };
      for (const [name, month] of [
        ['beta', '04'],
        ['alpha', '06'],
        ['gamma', '05'],
      ] as const) {
        const task = await world.create({
          ...{ ...fields, title: name, schedule_expr: `2027-${month}-01T00:00:00` },
        });
        if (name === 'gamma') await world.command(task, 'pause');
      }
      expect(await titles(`tag=${tag}`)).to.deep.equal(['gamma', 'alpha', 'beta']);
      expect(await titles(`tag=${tag}&sort=title`)).to.deep.equal(['alpha', 'beta', 'gamma']);
      // A paused task has no next run.
      expect(await titles(`tag=${tag}&sort=next`)).to.deep.equal(['beta', 'alpha']);
      const first = await world.person.client.get(`/tasks?tag=${tag}&sort=title&limit=2`);
      const cursor = first.textAt('next_cursor');
      expect(await titles(`tag=${tag}&sort=title&cursor=${cursor}`)).to.deep.equal(['gamma']);
    });

    it('says who paused a task or snoozed its next run, when and why', async () => {
      const task = await world.create();
      const shown = async (): Promise<Record<string, unknown>> => {
        const { client } = world.person;
        const one = (await client.get(`/tasks/${task}`)).json;
        const { items } = (await client.get('/tasks?limit=1')).json as { items: object[] };
        const { paused, snoozed } = items[0] as Record<string, unknown>;
        expect({ paused, snoozed }).to.deep.equal({
          paused: one['paused'],
          snoozed: one['snoozed'],
        });
        return one;
      };
      await world.command(task, 'snooze', { delay_seconds: 600 }, 'the shop is closed');
      const by = { by: world.person.id, by_name: 'ada' };
      const { snoozed, next_run_at } = await shown();
      expect(snoozed).to.deep.include({ ...by, reason: 'the shop is closed', until: next_run_at });
      await world.command(task, 'pause', undefined, 'moving house');
      const paused = await shown();
      expect(paused['paused']).to.deep.include({ ...by, reason: 'moving house' });
      expect(paused['snoozed']).to.equal(null);
      await world.command(task, 'resume');
      const resumed = await shown();
      expect(resumed['paused']).to.equal(null);
      expect(resumed['snoozed']).to.deep.include({ ...by, reason: 'the shop is closed' });
      const at = Date.parse(String(resumed['next_run_at']));
      await world.until(at + 20).decide(task);
      expect((await shown())['snoozed']).to.equal(null);
    });

    it('is checked as saving would, without a change', async () => {
      const task = await world.create();
      const { client } = world.person;
      const check = (body: object) => client.post('/tasks/check', body);
      const path = `/tasks/${task}`;
      const before = (await client.get(path)).json;
      const changed = await check({ task_id: task, title: 'Weekly', schedule_expr: '0 9 * * MON' });
      expect(changed.status, changed.text).to.equal(200);
      expect(changed.at('changes')).to.deep.equal([
        { path: 'title', before: before['title'], after: 'Weekly' },
        { path: 'schedule_expr', before: before['schedule_expr'], after: '0 9 * * MON' },
      ]);
      expect(changed.textAt('next_fire_at')).to.match(/T09:00:00\.000Z$/);
      expect((await client.get(path)).json).to.deep.equal(before);
      const never = await check({ task_id: task, schedule_expr: '0 0 30 2 *' });
      expect([never.status, never.at('details.field')]).to.deep.equal([400, 'schedule_expr']);
      const fresh = { title: 'New', description: '-', schedule_kind: 'event' };
      const misspelt = await check({ ...fresh, payload: { pipeline: [{ uses: 'ehco' }] } });
      expect(misspelt.at('warnings')).to.deep.equal([
        'payload.pipeline.0.uses: no tool named ehco is registered; did you mean echo?',
      ]);
      const far = await check({ ...fresh, payload: { pipeline: [{ uses: 'acme.ship' }] } });
      expect(far.textAt('warnings.0')).to.match(/is registered$/);
    });

    it('lists the tools of pipelines with their schemas', async () => {
      const answer = await world.person.client.get('/tools');
      const tools = answer.json['tools'] as { name: string; own: boolean; schema: object }[];
      const echo = tools.find(({ name }) => name === 'http.request');
      expect(echo?.own).to.equal(true);
      expect(echo?.schema).to.have.nested.property('properties.url');
      expect(answer.json['step']).to.have.nested.property('properties.uses');
    });
  });
}
