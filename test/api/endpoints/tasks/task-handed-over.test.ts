import { expect } from 'chai';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { FailedRuns } from '../runs/failed-runs.ts';

describe('a task with a new owner', () => {
  const api = useRunningApi();
  let former: SignedIn;
  let present: SignedIn;
  let runs: FailedRuns;
  let task: string;
  beforeEach(async () => {
    const scopes = ['tasks:read', 'tasks:write', 'runs:read'];
    former = await api().signIn(scopes);
    present = await api().signIn(scopes);
    runs = new FailedRuns(api(), former);
    task = await runs.makeTask();
  });

  const handOver = async (): Promise<void> => {
    const answer = await api().admin.client.put(`/tasks/${task}`, { created_by: present.id });
    expect(answer.status, answer.text).to.equal(200);
  };
  /** Expects that the former owner is refused, and that the present one succeeds. */
  const expectHandedOver = async (path: string, body?: object): Promise<ReceivedResponse> => {
    const refused = await former.client.post(path, body);
    expect(refused.status, refused.text).to.equal(403);
    expect(refused.at('error')).to.equal('forbidden');
    const answer = await present.client.post(path, body);
    expect(answer.status, answer.text).to.equal(200);
    return answer;
  };

  it('lets its owner cancel its runs', async () => {
    const run = await runs.runNow(task);
    await handOver();
    const answer = await expectHandedOver(`/runs/${run}/cancel`);
    expect(answer.at('details.run_id')).to.equal(run);
  });

  it('lets its owner retry its failed runs, from the failed step and from the start', async () => {
    const failed = [await runs.failed(task), await runs.failed(task)];
    await handOver();
    for (const [index, from] of ['failed_step', 'start'].entries()) {
      const answer = await expectHandedOver(`/runs/${failed[index]}/retry?from=${from}`);
      expect(answer.at('details.retry_of')).to.equal(failed[index]);
    }
  });

  it('lets its owner redrive its failed runs', async () => {
    const failed = await runs.failed(task);
    await handOver();
    const shown = await former.client.get(`/runs?limit=1&after=${await api().store.head()}`);
    expect(shown.status).to.equal(200);
    expect((await former.client.post('/runs/redrive')).at('details.count')).to.equal(0);
    expect((await former.client.post('/runs/redrive', { task_id: task })).status).to.equal(403);
    const { client } = api().admin;
    const ofFormer = await client.post('/runs/redrive', { created_by: former.id });
    expect(ofFormer.at('details.count')).to.equal(0);
    const answer = await present.client.post('/runs/redrive', { created_by: present.id });
    expect(answer.at('details.runs.0.retry_of')).to.equal(failed);
  });

  it('lets its owner cancel its backfills', async () => {
    const span = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T05:00:00Z' };
    const begun = await former.client.post(`/tasks/${task}/backfill`, span);
    expect(begun.status, begun.text).to.equal(202);
    const id = begun.textAt('details.backfill_id');
    await handOver();
    const answer = await expectHandedOver(`/backfills/${id}/cancel`);
    expect(answer.at('details.new_state')).to.equal('canceled');
  });
});
