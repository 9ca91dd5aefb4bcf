import { expect } from 'chai';
import type { Topics } from '../../../../api/client/client.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

describe('the topics with subscribers', () => {
  const api = useRunningApi();

  it('are listed page by page', async () => {
    const { client, id } = await api().signIn(['tasks:read', 'tasks:write']);
    for (const schedule_expr of ['paged.a', 'paged.b', 'paged.c']) {
      await client.post('/tasks', { ...plainTask(id), schedule_kind: 'event', schedule_expr });
    }
    const whole = (await client.get('/topics')).json as Topics;
    expect(whole).to.include({ limit: 200, offset: 0, has_more: false, next_cursor: null });
    expect(whole.topics.map(({ topic }) => topic)).to.include.members(['paged.a', 'paged.c']);
    const seen: Topics['topics'] = [];
    let query = '?limit=1';
    for (;;) {
      const page = (await client.get(`/topics${query}`)).json as Topics;
      expect(page.total_topics).to.equal(whole.total_topics);
      seen.push(...page.topics);
      if (page.next_cursor === null) break;
      expect(page).to.include({ limit: 1, has_more: true });
      query = `?limit=1&cursor=${page.next_cursor}`;
    }
    expect(seen).to.deep.equal(whole.topics);
    const second = await client.get('/topics?limit=1&offset=1');
    expect(second.at('topics')).to.deep.equal(whole.topics.slice(1, 2));
  });

  it("are current, including the caller's last change", async () => {
    const { client, id } = await api().signIn(['tasks:read', 'tasks:write']);
    const listening = { ...plainTask(id), schedule_kind: 'event', schedule_expr: 'now.made' };
    const task = (await client.post('/tasks', listening)).textAt('id');
    const topics = async (): Promise<readonly unknown[]> =>
      ((await client.get('/topics')).json as Topics).topics.map(({ topic }) => topic);
    expect(await topics()).to.include('now.made');
    await client.post(`/tasks/${task}/pause`);
    expect(await topics()).not.to.include('now.made');
  });
});
