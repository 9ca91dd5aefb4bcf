import { expect } from 'chai';
import { KeptAnswers } from '../../../api/serving/kept-answers.ts';
import { newId } from '../../../domain/ids.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('answers that are kept', () => {
  const answer = { body: { name: 'a' }, headers: { ETag: '"0"' } };
  const kept = { status: 200, headers: { ETag: '"0"' }, text: '{"name":"a"}' };

  it('are told by their key, of one version', () => {
    const answers = new KeptAnswers();
    expect(answers.find('a', '1')).to.equal(undefined);
    expect(answers.keep('a', '1', answer)).to.deep.equal(kept);
    expect(answers.find('a', '1')).to.deep.equal(kept);
    expect(answers.find('b', '1')).to.equal(undefined);
    expect(answers.find('a', '2')).to.equal(undefined);
    expect(answers.find('a', '1')).to.equal(undefined);
  });

  it('are not those that were made of what has changed meanwhile', () => {
    const answers = new KeptAnswers();
    answers.find('a', '1');
    answers.find('a', '2');
    expect(answers.keep('a', '1', answer)).to.deep.equal(kept);
    expect(answers.find('a', '2')).to.equal(undefined);
  });
});

describe('a task that is read again and again', () => {
  const api = useRunningApi();

  it('is told as every change leaves it, to whom it may be told', async () => {
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

  it('is told anew once a tool comes or goes that it uses', async () => {
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
