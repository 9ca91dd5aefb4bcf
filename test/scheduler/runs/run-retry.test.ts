import { expect } from 'chai';
import type { RunEvent, StepEnd } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import type { JsonValue } from '../../../domain/json.ts';
import { retryFailedRun } from '../../../domain/runs/run-retry.ts';
import { endsOf } from '../../../domain/runs/run-steps.ts';
import { streams } from '../../../domain/streams.ts';
import { requestManualRun, updateTaskCommand } from '../../../domain/tasks/task-commands.ts';
import type { RetryStart } from '../../../domain/vocabulary.ts';
import { LEASE, WorkerWorld } from './worker-world.ts';

const second = 1000;
const large = (name: string): string => name.repeat(200 * 1024);

describe('a failed run that is retried', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  const works = (step: string, result: JsonValue = null): void => {
    world.acts.set(step, () => result);
  };
  /** @param depth of the command */
  const retry = async (
    runId: string,
    from: RetryStart = 'failed_step',
    depth = 0,
  ): Promise<string> => {
    const { store } = world.world;
    const { request } = await world.run(runId);
    const task = await world.world.task(request.task_id);
    const context = { ...world.world.context(), depth };
    const { runId: id } = await retryFailedRun({ store, runId, from, task, context });
    await world.world.idle();
    return id;
  };
  const endsIn = async (runId: string): Promise<readonly StepEnd[]> =>
    endsOf((await world.run(runId)).steps);
  const namesIn = async (runId: string): Promise<readonly string[]> =>
    (await endsIn(runId)).map(({ step }) => step);
  const once = { max_retries: 0 };

  it('continues with the failed step, and keeps earlier results', async () => {
    await world.task('t', ['a', 'b', 'c'], once);
    works('a', { paper: 1 });
    world.fails('b');
    await world.start('one');
    const failed = await world.request('t');
    works('b', { paper: 2 });
    const runId = await retry(failed);
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
    expect(await world.run(failed)).to.include({ state: 'failed', retried_by: runId });
    expect(world.stepsOf(runId)).to.deep.equal(['b', 'c']);
    const [a, ...rest] = await endsIn(runId);
    expect(a).to.include({ step: 'a', status: 'succeeded' });
    expect(a?.result).to.deep.equal({ paper: 1 });
    expect(rest.map(({ step }) => step)).to.deep.equal(['b', 'c']);
  });

  it('restarts on request, with the present task', async () => {
    await world.task('t', ['a', 'b'], once);
    world.fails('b');
    await world.start('one');
    const failed = await world.request('t');
    const pipeline = ['a', 'x'].map((id) => ({ id, uses: 'act' }));
    await updateTaskCommand({ ...world.world.command('t'), changes: { payload: { pipeline } } });
    await world.world.idle();
    const runId = await retry(failed, 'start');
    expect(world.stepsOf(runId)).to.deep.equal(['a', 'x']);
    works('b');
    expect(world.stepsOf(await retry(failed))).to.deep.equal(['b']);
  });

  it('does not repeat finished items of a for_each', async () => {
    const pipeline = [
      { id: 'each', uses: 'act', for_each: '${[`0`, `1`, `2`, `3`, `4`]}' },
      { id: 'last', uses: 'act' },
    ];
    await world.task('t', [], { ...once, payload: { pipeline } });
    works('each[0]', 'zero');
    world.fails('each[3]');
    await world.start('one');
    const failed = await world.request('t');
    expect(world.stepsOf(failed)).to.have.length(4);
    works('each[3]');
    const runId = await retry(failed);
    expect(world.stepsOf(runId)).to.deep.equal(['each[3]', 'each[4]', 'last']);
    expect((await endsIn(runId)).at(0)).to.include({ step: 'each[0]', result: 'zero' });
  });

  it('keeps its depth, unless a run with a greater depth retries it', async () => {
    await world.task('t', ['a'], once);
    world.fails('a');
    await world.start('one');
    const { store } = world.world;
    const context = { ...world.world.context(), depth: 4 };
    const task = await world.world.task('t');
    const { runId: failed } = await requestManualRun(store, 't', task, context);
    await world.world.idle();
    const depths: number[] = [];
    for (const by of [0, 3, 9]) {
      const runId = await retry(failed, 'start', by);
      depths.push((await world.run(runId)).depth);
    }
    expect(depths).to.deep.equal([4, 4, 9]);
  });

  it('can fail and be retried again', async () => {
    await world.task('t', ['a', 'b', 'c'], once);
    world.fails('b');
    await world.start('one');
    const first = await world.request('t');
    works('b');
    world.fails('c');
    const again = await retry(first);
    works('c');
    const last = await retry(again);
    expect(await world.run(last)).to.include({ state: 'succeeded' });
    expect(world.stepsOf(last)).to.deep.equal(['c']);
    expect((await world.run(last)).request.retry_of).to.equal(again);
    expect(await namesIn(last)).to.deep.equal(['a', 'b', 'c']);
  });

  describe('with results too large for one event', () => {
    const steps = ['a', 'b', 'c', 'd', 'e'] as const;
    let failed: string;
    const fail = async (): Promise<void> => {
      await world.task('t', [...steps, 'last'], once);
      for (const step of steps) works(step, large(step));
      world.fails('last');
      await world.start('one');
      failed = await world.request('t');
      expect(await world.run(failed)).to.include({ state: 'failed' });
    };

    it('starts with all of them, and stores them', async () => {
      await fail();
      works('last', 'done');
      const runId = await retry(failed);
      expect(await world.run(runId)).to.include({ state: 'succeeded' });
      expect(world.stepsOf(runId)).to.deep.equal(['last']);
      const [request] = await world.eventsOf(runId);
      expect(request?.data).to.deep.include({
        prior_steps: [],
        prior_results: { run_id: failed, steps: 5 },
      });
      const ends = await endsIn(runId);
      expect(ends.map(({ step }) => step)).to.deep.equal([...steps, 'last']);
      for (const [index, step] of steps.entries()) {
        expect(ends[index]?.result === large(step), step).to.equal(true);
      }
    });

    it('is retried again from its own stream', async () => {
      await fail();
      const again = await retry(failed);
      expect(await world.run(again)).to.include({ state: 'failed' });
      works('last');
      const last = await retry(again);
      const [request] = await world.eventsOf(last);
      expect(request?.data).to.deep.include({ prior_results: { run_id: again, steps: 5 } });
      expect(world.stepsOf(last)).to.deep.equal(['last']);
      expect(await namesIn(last)).to.deep.equal([...steps, 'last']);
    });

    it('reuses the results before a chosen step, through further retries', async () => {
      await fail();
      const { store } = world.world;
      const from = async (runId: string, step: string): Promise<string> => {
        const task = await world.world.task('t');
        const context = world.world.context();
        const retried = { store, runId, from: 'failed_step', step, task, context } as const;
        const { runId: id } = await retryFailedRun(retried);
        await world.world.idle();
        return id;
      };
      const third = await from(failed, 'c');
      const [request] = await world.eventsOf(third);
      const prior_results = { run_id: failed, steps: 2, before: 'c' };
      expect(request?.data).to.deep.include({ prior_steps: [], prior_results });
      expect(world.stepsOf(third)).to.deep.equal(['c', 'd', 'e', 'last']);
      expect((await namesIn(third)).slice(0, 2)).to.deep.equal(['a', 'b']);
      works('last');
      const second = await from(third, 'b');
      expect(world.stepsOf(second)).to.deep.equal(['b', 'c', 'd', 'e', 'last']);
      expect(await world.run(second)).to.include({ state: 'succeeded' });
    });

    it('starts with all of them when its worker dies during the take-over', async () => {
      await fail();
      works('last');
      const [one] = world.workers;
      if (one === undefined) throw new Error('there is no worker');
      let left = 3;
      one.store.onAppend = (_stream, events) => {
        if (events[0]?.type !== 'RunStepCompleted') return;
        left -= 1;
        if (left === 0) one.kill();
      };
      const runId = await retry(failed);
      expect(await namesIn(runId)).to.deep.equal(['a', 'b']);
      await world.start('two');
      await world.clock.advance(LEASE + 20 * second);
      expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
      expect(await namesIn(runId)).to.deep.equal([...steps, 'last']);
      expect(world.stepsOf(runId)).to.deep.equal(['last']);
    });

    it('is retried when it failed before the take-over', async () => {
      await fail();
      works('last');
      const { store } = world.world;
      await world.workers[0]?.stop();
      // As a worker records it when the run times out right after the first.
      const half = await retryFailedRun({
        store,
        runId: failed,
        from: 'failed_step',
        task: await world.world.task('t'),
        context: world.world.context(),
      });
      const [a] = await endsIn(failed);
      const stream = streams.run(half.runId);
      const events: readonly RunEvent[] = [
        {
          type: 'RunStarted',
          data: { worker: 'w', attempt: 1, leased_until: '2090-01-01T00:00:00.000Z' },
        },
        ...(a === undefined ? [] : [{ type: 'RunStepCompleted' as const, data: a }]),
        {
          type: 'RunFailed',
          data: {
            task_id: 't',
            started_at: '2026-03-01T08:00:00.000Z',
            attempt: 1,
            error: 'over',
            step: null,
            steps: [],
            output: {},
          },
        },
      ];
      await store.append(stream, toNewEvents(stream, events, world.world.context()), 0);
      await world.start('two');
      const last = await retry(half.runId);
      expect(await world.run(last)).to.include({ state: 'succeeded' });
      expect(await namesIn(last)).to.deep.equal([...steps, 'last']);
      expect(world.stepsOf(last)).to.deep.equal(['last']);
    });
  });

  it('queues after earlier requests, whatever its nominal time', async () => {
    await world.task('t', ['a'], once);
    world.fails('a');
    const one = await world.start('one', { slots: 1 });
    const failed = await world.request('t');
    works('a');
    await one.stop();
    await world.clock.advance(second);
    const before = await world.request('t');
    await world.clock.advance(second);
    const runId = await retry(failed);
    await world.start('two', { slots: 1 });
    expect(world.effects.map(({ run }) => run)).to.deep.equal([failed, before, runId]);
  });
});
