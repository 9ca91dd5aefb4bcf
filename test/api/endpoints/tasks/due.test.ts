import { expect } from 'chai';
import { useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

describe('the list of due fires over HTTP', () => {
  const api = useRunningApi();

  it('is sorted by time up to an instant, without paused tasks', async () => {
    const { client, id: owner } = await api().signIn(['tasks:read', 'tasks:write']);
    const year = new Date(api().clock.now()).getUTCFullYear() + 1;
    const made: string[] = [];
    for (const [n, title] of ['third', 'first', 'second', 'paused'].entries()) {
      const month = ['04', '02', '03', '02'][n];
      const answer = await client.post('/tasks', {
        ...plainTask(owner),
        title,
        schedule_kind: 'once',
        schedule_expr: `${year}-${month}-01T00:00:00`,
      });
      expect(answer.status, answer.text).to.equal(201);
      made.push(answer.textAt('id'));
    }
    await client.post(`/tasks/${made[3]}/pause`);
    const titles = async (query: string): Promise<readonly string[]> => {
      const { items } = (await client.get(`/tasks/due?${query}`)).json as {
        readonly items: readonly { readonly title: string }[];
      };
      return items.map(({ title }) => title);
    };
    expect(await titles('')).to.deep.equal(['first', 'second', 'third']);
    expect(await titles(`until=${year}-03-01T00:00:00Z`)).to.deep.equal(['first', 'second']);
    const page = await client.get('/tasks/due?limit=1');
    expect(page.at('total')).to.equal(3);
    expect(page.at('items')).to.deep.equal([
      { task_id: made[1], title: 'first', next_run_at: `${year}-02-01T00:00:00.000Z` },
    ]);
    expect(await titles(`limit=1&cursor=${page.textAt('next_cursor')}`)).to.deep.equal(['second']);
  });
});
