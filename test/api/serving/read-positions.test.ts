import { expect } from 'chai';
import { streams } from '../../../domain/streams.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('the position that a read of the log itself is to have passed', () => {
  const api = useRunningApi();
  let paths: readonly string[];
  before(async () => {
    const { client, id } = api().admin;
    const task = (await client.post('/tasks', plainTask(id))).textAt('id');
    paths = [
      `/tasks/${task}/history`,
      `/streams/${streams.task(task)}`,
      '/streams',
      '/operations',
      '/projections',
      '/replays',
      `/tasks/${task}/explain?at=2026-01-01T00:00:00Z`,
    ];
  });
  const read = (path: string, after: string) =>
    api().admin.client.get(`${path}${path.includes('?') ? '&' : '?'}after=${after}`);

  it('is one that stands in the log', async () => {
    const head = await api().store.head();
    for (const path of paths) expect((await read(path, head)).status, path).to.equal(200);
  });

  it('is refused where it is none, as by the reads of views', async () => {
    const beyond = (await api().store.head()).replace(/^./, '9');
    for (const path of [...paths, '/tasks']) {
      for (const after of ['x', beyond, 'a&after=b']) {
        const refused = await read(path, after);
        expect(refused.status, `${path} ${after}`).to.equal(400);
        expect(refused.at('details.field')).to.equal('after');
      }
    }
  });
});
