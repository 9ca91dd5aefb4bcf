import { expect } from 'chai';
import { streams } from '../../../../domain/streams.ts';
import { stepEnd } from '../../../projections/recorded.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { FailedRuns, start } from './failed-runs.ts';

describe('the plan of a run over HTTP', () => {
  const api = useRunningApi();
  const runs = (): FailedRuns => new FailedRuns(api(), api().admin);

  const planIn = async (path: string): Promise<readonly string[]> => {
    const { json } = await api().admin.client.get(path);
    const plan = json['plan'] as readonly { readonly step: string; readonly state: string }[];
    return plan.map(({ step, state }) => `${step} ${state}`);
  };

  it('shows all steps with their states while the run is in progress, by its id or as the latest run', async () => {
    const task = await runs().makeTask();
    const run = await runs().runNow(task);
    expect(await planIn(`/runs/${run}`)).to.deep.equal(['a pending', 'b pending', 'c pending']);
    const arguments_hash = 'ab'.repeat(32);
    const ended = stepEnd('a', { arguments_hash });
    await api().append(streams.run(run), [start, { type: 'RunStepCompleted', data: ended }]);
    const states = ['a succeeded', 'b running', 'c pending'];
    expect(await planIn(`/runs/${run}`)).to.deep.equal(states);
    expect(await planIn(`/task/${task}/latest`)).to.deep.equal(states);
    const { json } = await api().admin.client.get(`/runs/${run}`);
    const first = { step: 'a', state: 'succeeded', uses: 'echo', group: null, needs: [] };
    expect((json['plan'] as unknown[])[0]).to.deep.equal({ ...first, arguments_hash });
    expect((json['steps'] as unknown[])[0]).to.include({ arguments_hash });
  });

  it('shows the pipeline that the run is pinned to, not the present one of the task', async () => {
    const task = await runs().makeTask();
    const run = await runs().failed(task);
    const payload = { pipeline: [{ id: 'other', uses: 'echo' }] };
    await api().admin.client.put(`/tasks/${task}`, { payload });
    expect(await planIn(`/runs/${run}`)).to.deep.equal(['a succeeded', 'b succeeded', 'c failed']);
  });

  it('shows the steps of a retried run as reused', async () => {
    const run = await runs().failed(await runs().makeTask());
    const retried = await api().admin.client.post(`/runs/${run}/retry`);
    const states = await planIn(`/runs/${retried.textAt('details.run_id')}`);
    expect(states).to.deep.equal(['a reused', 'b reused', 'c pending']);
  });

  it('is omitted from lists', async () => {
    await runs().failed(await runs().makeTask());
    const { json } = await api().admin.client.get('/runs');
    const [item] = json['items'] as readonly object[];
    expect(item).to.not.have.any.keys('plan', 'reused', 'steps');
  });
});
