import { expect } from 'chai';
import { ResponseCache } from '../../../api/serving/response-cache.ts';
import { newId } from '../../../domain/ids.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('cached responses', () => {
  const answer = { body: { name: 'a' }, headers: { ETag: '"0"' } };
  const cached = { status: 200, headers: { ETag: '"0"' }, json: '{"name":"a"}' };
  const entry = (key: string, version: string) => ({ key, version });

  it('are found by their key, in one version only', () => {
    const answers = new ResponseCache();
    expect(answers.find(entry('a', '1'))).to.equal(undefined);
    expect(answers.keep(entry('a', '1'), answer)).to.deep.equal(cached);
    expect(answers.find(entry('a', '1'))).to.deep.equal(cached);
    expect(answers.find(entry('b', '1'))).to.equal(undefined);
    expect(answers.find(entry('a', '2'))).to.equal(undefined);
    expect(answers.find(entry('a', '1'))).to.equal(undefined);
  });

  it('are not kept if their version was replaced meanwhile', () => {
    const answers = new ResponseCache();
    answers.find(entry('a', '1'));
    answers.find(entry('a', '2'));
    expect(answers.keep(entry('a', '1'), answer)).to.deep.equal(cached);
    expect(answers.find(entry('a', '2'))).to.equal(undefined);
  });
});

describe('a task that is read repeatedly', () => {
  const api = useRunningApi();

  it('is shown as of its last change, to authorized callers', async () => {
    const { client, id: admin } = api().admin;
    const created = await client.post('/tasks', plainTask(admin));
    const id = created.textAt('id');
    const stranger = await api().signIn(['tasks:write']);
    for (let number = 1; number <= 5; number += 1) {
      const title = `title ${String(number)}`;
      await client.put(`/tasks/${id}`, { title });
      for (const path of [`/tasks/${id}`, `/tasks/${id.toUpperCase()}`, `/tasks/${id}`]) {
        const shown = await client.get(path);
        expect([shown.status, shown.textAt('title')]).to.deep.equal([200, title]);
        expect(shown.header('ETag')).to.equal(`"${String(number)}"`);
      }
      expect((await stranger.client.get(`/tasks/${id}`)).status).to.equal(403);
    }
    expect((await client.get(`/tasks/${newId(Date.now())}`)).status).to.equal(404);
  });

  it('is shown with new warnings when a tool that it uses is registered or removed', async () => {
    const { client, id: admin } = api().admin;
    const payload = { pipeline: [{ uses: 'late.tool' }] };
    const created = await client.post('/tasks', { ...plainTask(admin), payload });
    const path = `/tasks/${created.textAt('id')}`;
    const warnings = async (): Promise<unknown> => (await client.get(path)).at('warnings');
    const warned = await warnings();
    expect(warned).to.have.lengthOf(1);
    expect(await warnings()).to.deep.equal(warned);
    const { tools } = api();
    const schema = { type: 'object' };
    tools.register({ name: 'late.tool', description: 'comes late', schema, run: async () => null });
    expect(await warnings()).to.deep.equal([]);
    tools.unregister('late.tool');
    expect(await warnings()).to.deep.equal(warned);
  });
});
