import { expect } from 'chai';
import { newId } from '../../../domain/ids.ts';
import { EventStream } from '../../support/event-stream.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';
import { failure, request } from '../../projections/recorded.ts';
import { plainTask } from '../plain-task.ts';

describe('the limits of an agent', () => {
  const sharing = { waitingRunsPerAgent: 2, waitingRunsPerNamespace: 3, liveStreamsPerAgent: 2 };
  const api = useRunningApi({ sharing });

  const taskOf = async (owner: string): Promise<string> =>
    (await api().admin.client.post('/tasks', plainTask(owner))).textAt('id');
  const runNow = (task: string) => api().admin.client.post(`/tasks/${task}/run_now`);
  const addRun = async (task_id: string, created_by: string): Promise<string> => {
    const id = newId(0);
    const data = request({ task_id, created_by });
    await api().append(`run-${id}`, [{ type: 'RunRequested', data }]);
    return id;
  };
  const counted = async (agent: string, count: number): Promise<void> =>
    eventually(() => api().jobs.unfinishedRuns({ agent, namespace: 'default' })?.agent === count);

  it('reject a run, a retry and a backfill while too many of its runs are unfinished', async () => {
    const { admin } = api();
    const task = await taskOf(admin.id);
    const failed = await addRun(task, admin.id);
    await api().append(`run-${failed}`, [{ type: 'RunFailed', data: failure({ task_id: task }) }]);
    for (let n = 0; n < 2; n += 1) await addRun(task, admin.id);
    await counted(admin.id, 2);
    const span = { from: '2026-03-01T00:00:00Z', to: '2026-03-02T00:00:00Z' };
    const answers = [
      await runNow(task),
      await admin.client.post(`/runs/${failed}/retry`),
      await admin.client.post(`/tasks/${task}/backfill`, span),
    ];
    for (const answer of answers) {
      expect(answer.status, answer.text).to.equal(429);
      expect(answer.header('retry-after')).to.equal('10');
      expect(answer.at('details')).to.deep.equal({
        limit: 2,
        setting: 'SVC_WAITING_RUNS_PER_AGENT',
      });
    }
    const metrics = await api().metricsText();
    expect(metrics).to.contain('limit_refusals_total{limit="waiting_runs_agent"} 3');
  });

  it('count the runs of a namespace together', async () => {
    const third = await api().signIn(['tasks:write']);
    const [one, other] = [await api().signIn(['tasks:write']), await api().signIn(['tasks:write'])];
    for (const { id } of [one, one, other]) await addRun(newId(0), id);
    await counted(one.id, 2);
    await counted(other.id, 1);
    const answer = await runNow(await taskOf(third.id));
    expect(answer.status, answer.text).to.equal(429);
    expect(answer.at('details.setting')).to.equal('SVC_WAITING_RUNS_PER_NAMESPACE');
  });

  it('reject a live stream while it has too many, counting runs and the audit together', async () => {
    const { admin, url } = api();
    const open = (path: string): Promise<EventStream> =>
      EventStream.open(`${url}${path}`, admin.client.token, {});
    const first = await open('/runs/live');
    const second = await open('/audit/live');
    const third = await open('/runs/live');
    expect([first.status, second.status, third.status]).to.deep.equal([200, 200, 429]);
    const other = await api().signIn(['runs:read']);
    const others = await EventStream.open(`${url}/runs/live`, other.client.token, {});
    expect(others.status).to.equal(200);
    first.close();
    await eventually(async () => {
      const next = await open('/runs/live');
      next.close();
      return next.status === 200;
    });
    for (const stream of [second, third, others]) stream.close();
  });
});
