import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { openStandIns } from '../../../support/stand-in-stores.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld, minute } from './explaining.ts';

interface Outcome {
  readonly task_id: string;
  readonly runs: readonly { readonly id: string; readonly state: string }[];
  readonly p95_execution_time_seconds: number | null;
  readonly failing: boolean;
  readonly failed_in_period: boolean;
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
      // The clock goes on while the worker's results are written.
      expect(busy?.p95_execution_time_seconds).to.be.within(2, 20);
      expect(busy).to.include({ failing: false, failed_in_period: true });
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
          ...fields,
          title: name,
          schedule_expr: `2027-${month}-01T00:00:00`,
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

    it('is sorted by owner, slowness or health, over all pages', async () => {
      const { client } = world.person;
      const tags = ['ranked'];
      const zoe = await api().signIn(['tasks:read', 'tasks:write'], 'Zoe');
      const ran = async (title: string, seconds: number, ...ends: readonly string[]) => {
        const task = await world.create({ title, tags, schedule_expr: '* * * * *' });
        for (const error of ends) {
          const at = Math.ceil(api().clock.now() / minute) * minute;
          const [run = ''] = await world.until(at + 20).decide(task);
          await world.work(task, run, seconds, error === '' ? undefined : error);
        }
        return task;
      };
      const paused = await ran('paused', 27, 'no ink');
      await world.command(paused, 'pause');
      const first = await ran('failing first', 9, 'no ink');
      const fine = await ran('fine', 12, '');
      const last = await ran('failing last', 6, '', 'no ink');
      const unsteady = await ran('unsteady', 3, 'no ink', '');
      await world.create({ title: 'fresh', tags });
      expect((await client.put(`/tasks/${fine}`, { created_by: zoe.id })).status).to.equal(200);
      for (const task of [first, fine, last, unsteady]) await world.decide(task);
      const after = await api().store.head();
      const by = (sort: string, more = '') =>
        titles(`tag=ranked&sort=${sort}&after=${after}${more}`);
      expect(await by('p95')).to.deep.equal([
        ...['paused', 'fine', 'failing first', 'failing last', 'unsteady', 'fresh'],
      ]);
      const worst = ['failing last', 'failing first', 'paused', 'unsteady', 'fresh', 'fine'];
      expect(await by('health')).to.deep.equal(worst);
      expect(await by('owner')).to.deep.equal([
        ...['fresh', 'unsteady', 'failing last', 'failing first', 'paused', 'fine'],
      ]);
      // Some fires have been due and undecided for more than a minute.
      world.until(api().clock.now() + 3 * minute);
      expect((await by('health')).slice(0, 4)).to.deep.equal([
        ...['failing last', 'failing first', 'unsteady', 'fine'],
      ]);
      const pages: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const more = cursor === '' ? '' : `&cursor=${cursor}`;
        const page = await client.get(`/tasks?tag=ranked&sort=p95&limit=4${more}`);
        expect(page.json).to.include({ total: 6 });
        pages.push(...(page.json['items'] as { title: string }[]).map(({ title }) => title));
        cursor = page.at('next_cursor') as string | null;
      }
      expect(pages).to.deep.equal(await by('p95'));
      expect(await by('p95', '&offset=4')).to.deep.equal(['unsteady', 'fresh']);
      const busy = (await outcomesOf(last, unsteady)).map(({ failing, failed_in_period }) => [
        ...[failing, failed_in_period],
      ]);
      expect(busy).to.deep.equal([
        [true, true],
        [false, true],
      ]);
      // The order would reveal the results of runs.
      const refused = await zoe.client.get('/tasks?sort=health');
      expect([refused.status, refused.at('details.required_scopes')]).to.deep.equal([
        403,
        ['runs:read'],
      ]);
      expect((await zoe.client.get('/tasks?sort=owner')).status).to.equal(200);
      // A cursor does not reveal how many agents have no such tasks.
      await api().signIn(['tasks:read'], 'Aaron');
      const owned = await client.get(`/tasks?sort=owner&limit=1&after=${await api().store.head()}`);
      const place = Buffer.from(owned.textAt('next_cursor'), 'base64url').toString();
      expect(JSON.parse(place)).to.have.deep.property('1', [0]);
      const foreign = await client.get(
        `/tasks?sort=owner&cursor=${(await client.get('/tasks?sort=p95&limit=1')).textAt('next_cursor')}`,
      );
      expect(foreign.at('details.field')).to.equal('cursor');
    });

    it('can be filtered by a secret that tasks use', async () => {
      const using = (...names: readonly string[]) => {
        const headers = Object.fromEntries(names.map((name) => [name, `\${secrets.${name}}`]));
        const step = { uses: 'http.request', with: { url: 'http://a.example/', headers } };
        return { title: names.join(' and '), payload: { pipeline: [step] } };
      };
      const changed = await world.create(using('ONE', 'TWO'));
      await world.create(using('TWO', 'THREE'));
      expect(await titles('secret=ONE')).to.deep.equal(['ONE and TWO']);
      expect(await titles('secret=TWO')).to.deep.equal(['TWO and THREE', 'ONE and TWO']);
      await world.person.client.put(`/tasks/${changed}`, using('FOUR'));
      expect(await titles('secret=ONE')).to.deep.equal([]);
      expect(await titles('secret=FOUR')).to.deep.equal(['FOUR']);
    });

    it('says who paused a task or snoozed its next run, when and why', async () => {
      const task = await world.create();
      const shown = async (): Promise<Record<string, unknown>> => {
        const { client } = world.person;
        const after = `after=${await api().store.head()}`;
        const one = (await client.get(`/tasks/${task}?${after}`)).json;
        const list = await client.get(`/tasks?limit=1&${after}`);
        const { items } = list.json as { items: object[] };
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

    it('is unchanged by a check of a definition, which finds what saving would reject', async () => {
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
