import { expect } from 'chai';
import type { JsonObject } from '../../../domain/json.ts';
import { outputOf, type RunOutput } from '../../../domain/pipeline/output.ts';
import { endsOf } from '../../../domain/runs/run-steps.ts';
import { cancelTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { deferred } from '../../support/signals.ts';
import { WorkerWorld } from './worker-world.ts';

const second = 1000;

describe('the output of a canceled run', () => {
  let world: WorkerWorld;
  beforeEach(async () => {
    world = await WorkerWorld.open();
    world.acts.set('a', () => 'done');
  });
  afterEach(() => world.close());

  /** Two steps, each of which names its result. */
  const task = (second: 'hold' | 'deaf' | 'act'): Promise<void> => {
    const pipeline = [
      { id: 'a', uses: 'act', save_as: 'first' },
      { id: 'b', uses: second, save_as: 'second', timeout_seconds: 86_400 },
    ];
    return world.task('t', [], { payload: { pipeline }, max_retries: 3 });
  };

  /** As reads show it. */
  const outputOfRun = async (runId: string): Promise<RunOutput> => {
    const end = (await world.eventsOf(runId)).at(-1);
    expect(end?.type).to.equal('RunCanceled');
    const stored = (end?.data as { readonly output?: JsonObject } | undefined)?.output;
    if (stored === undefined) throw new Error('the run has no output');
    return outputOf(endsOf((await world.run(runId)).steps), stored);
  };

  const first = {
    steps: { first: 'done' },
    summary: { total_steps: 2, executed_steps: 1, skipped_steps: 0 },
  };

  const withFailure = {
    steps: { first: 'done', second: { error: 'broke' } },
    summary: { total_steps: 2, executed_steps: 2, skipped_steps: 0 },
  };

  it('has named results when its worker stops', async () => {
    await task('hold');
    await world.start('one');
    const runId = await world.request('t');
    await world.cancel(runId);
    expect(await outputOfRun(runId)).to.deep.equal(first);
  });

  it('has named results when its step does not stop', async () => {
    await task('deaf');
    await world.start('one');
    const runId = await world.request('t');
    await world.clock.advance(second);
    await world.cancel(runId);
    await world.clock.advance(10 * second);
    expect((await outputOfRun(runId)).steps).to.not.have.property('a');
  });

  it('has named results while it waits for its next attempt', async () => {
    await task('act');
    world.acts.set('b', () => {
      throw new Error('broke');
    });
    await world.start('one');
    const runId = await world.request('t');
    expect(await world.run(runId)).to.include({ state: 'retrying' });
    await world.cancel(runId);
    expect(await outputOfRun(runId)).to.deep.equal(withFailure);
  });

  it('has named results when its task is canceled before its next attempt', async () => {
    await task('act');
    world.acts.set('b', () => {
      throw new Error('broke');
    });
    await world.start('one');
    const runId = await world.request('t');
    const context = world.world.context();
    await cancelTaskCommand({
      store: world.world.store,
      taskId: 't',
      context,
      mayChange: () => {},
    });
    await world.clock.advance(60 * second);
    expect(await outputOfRun(runId)).to.deep.equal(withFailure);
  });

  it('has named results when its worker is dead', async () => {
    await task('deaf');
    const one = await world.start('one', {
      runPipeline: async ({ record, run }) => {
        const at = '2026-03-02T08:00:00.000Z';
        const end = { step: 'a', status: 'succeeded', result: 'done', error: null } as const;
        const times = { started_at: at, finished_at: at, attempt: run.attempt, log: [] };
        await record([{ type: 'RunStepCompleted', data: { ...end, ...times } }]);
        return deferred<never>().promise;
      },
    });
    const runId = await world.request('t');
    one.kill();
    await world.cancel(runId);
    await world.start('two');
    await world.clock.advance(120 * second);
    expect(await outputOfRun(runId)).to.deep.equal(first);
  });

  it('is empty when it never started', async () => {
    await task('act');
    const runId = await world.request('t');
    await world.cancel(runId);
    expect((await world.eventsOf(runId)).at(-1)?.data).to.deep.equal({ attempt: 0 });
  });
});
