import { expect } from 'chai';
import type { StepEnd } from '../../../../domain/events/catalogue.ts';
import { streams } from '../../../../domain/streams.ts';
import { stepEnd } from '../../../projections/recorded.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { FailedRuns } from './failed-runs.ts';

describe('a retry from a step', () => {
  const api = useRunningApi();
  const runs = (): FailedRuns => new FailedRuns(api(), api().admin);
  const retry = async (run: string, body: object): Promise<string> => {
    const answer = await api().admin.client.post(`/runs/${run}/retry`, body);
    expect(answer.status, answer.text).to.equal(200);
    return answer.textAt('details.run_id');
  };
  const keptBy = async (run: string): Promise<readonly string[]> =>
    (await runs().requestOf(run)).prior_steps.map(({ step }) => step);

  it('keeps the results of earlier steps, and accepts other params', async () => {
    const run = await runs().failed(await runs().makeTask());
    const again = await retry(run, { step: 'b', params: { limit: 5 } });
    expect(await keptBy(again)).to.deep.equal(['a']);
    expect((await runs().requestOf(again)).params).to.deep.equal({ limit: 5 });
    const events = await api().store.readStream(streams.run(run));
    expect(events.at(-1)?.data).to.deep.equal({ run_id: again, from: 'failed_step', step: 'b' });
    expect(await keptBy(await retry(run, { step: 'a' }))).to.deep.equal([]);
    expect(await keptBy(await retry(run, { step: 'c' }))).to.deep.equal(['a', 'b']);
  });

  it('in a graph keeps the results of steps that do not come after it', async () => {
    const pipeline = [
      { id: 'last', uses: 'echo', needs: ['both', 'a'] },
      { id: 'a', uses: 'echo' },
      { id: 'side', uses: 'echo' },
      {
        id: 'both',
        parallel: [
          { id: 'x', uses: 'echo' },
          { id: 'y', uses: 'echo' },
        ],
        needs: ['a'],
      },
    ];
    const task = await runs().makeTask({ payload: { pipeline } });
    const run = await runs().runNow(task);
    const ends = ['a', 'side', 'x', 'y', 'both'].map((step) => stepEnd(step));
    await runs().failWith(task, run, ends);
    expect(await keptBy(await retry(run, { step: 'a' }))).to.have.members(['side']);
    expect(await keptBy(await retry(run, { step: 'x' }))).to.have.members(['a', 'side', 'y']);
    expect(await keptBy(await retry(run, { step: 'both' }))).to.have.members(['a', 'side']);
  });

  it('runs all items of a `for_each` again', async () => {
    const pipeline = [
      { id: 'a', uses: 'echo' },
      { id: 'each', uses: 'echo', for_each: [1, 2] },
      { id: 'c', uses: 'echo' },
    ];
    const task = await runs().makeTask({ payload: { pipeline } });
    const run = await runs().runNow(task);
    await runs().failWith(
      task,
      run,
      ['a', 'each[0]', 'each[1]', 'each'].map((step) => stepEnd(step)),
    );
    expect(await keptBy(await retry(run, { step: 'each' }))).to.deep.equal(['a']);
  });

  it('names the run that large results come from, and the step to start with', async () => {
    const large = { text: 'x'.repeat(90_000) };
    const task = await runs().makeTask();
    const run = await runs().runNow(task);
    const ends: StepEnd[] = ['a', 'b'].map((step) => stepEnd(step, { result: large }));
    await runs().failWith(task, run, ends);
    const whole = await runs().requestOf(await retry(run, {}));
    expect(whole.prior_results).to.deep.equal({ run_id: run, steps: 2 });
    const huge = { text: 'x'.repeat(200_000) };
    const other = await runs().runNow(task);
    await runs().failWith(task, other, [stepEnd('a', { result: huge }), stepEnd('b')]);
    const part = await runs().requestOf(await retry(other, { step: 'b' }));
    expect(part.prior_results).to.deep.equal({ run_id: other, steps: 1, before: 'b' });
  });

  it('is rejected for a step that the run lacks, and names those it has', async () => {
    const run = await runs().failed(await runs().makeTask());
    const { client } = api().admin;
    const unknown = await client.post(`/runs/${run}/retry`, { step: 'd' });
    expect(unknown.status).to.equal(400);
    expect(unknown.at('details.issues')).to.deep.equal([
      { field: 'step', issue: 'must be a step of the run: a, b, c' },
    ]);
    const both = await client.post(`/runs/${run}/retry?from=start`, { step: 'b' });
    expect(both.at('details.issues.0.issue')).to.equal('cannot be given together with from=start');
    expect((await api().store.readStream(streams.run(run))).at(-1)?.type).to.equal('RunFailed');
  });
});
