import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { request } from '../../../projections/recorded.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

describe('when a task last ran', () => {
  const api = useRunningApi();

  it('is known for as long as the task, also where the run was removed', async () => {
    const { client, id: owner } = api().admin;
    const task = (await client.post('/tasks', plainTask(owner))).textAt('id');
    const run = newId(api().clock.now());
    const at = '2026-03-02T09:00:00.000Z';
    await api().append(streams.run(run), [
      { type: 'RunRequested', data: request({ task_id: task, created_by: owner }) },
      { type: 'RunCanceled', data: { attempt: 0 } },
    ]);
    const lastRun = async (): Promise<readonly unknown[]> => {
      const after = await api().store.head();
      for (const path of ['/runs', '/stats/summary']) await client.get(`${path}?after=${after}`);
      const listed = await client.get(`/tasks?created_by=${owner}`);
      const shown = await client.get(`/tasks/${task}`);
      return [shown.at('last_run_at'), listed.at('items.0.last_run_at')];
    };
    expect(await lastRun()).to.deep.equal([null, null]);
    await api().append(streams.run(run), [
      { type: 'RunRemoved', data: { started: { task_id: task, at } } },
    ]);
    expect(await lastRun()).to.deep.equal([at, at]);
    expect((await client.get(`/task/${task}/latest`)).text).to.equal('null');
    const asOf = async (moment: string): Promise<unknown> =>
      (await client.get(`/tasks/${task}?as_of=${moment}`)).at('last_run_at');
    expect(await asOf(await api().store.head())).to.equal(at);
    expect(await asOf(new Date(api().clock.now()).toISOString())).to.equal(at);
  });
});
