import { expect } from 'chai';
import { handle } from '../../../domain/handle.ts';
import { resumeStep, type Resumption } from '../../../domain/runs/run-waits.ts';
import { requireRun, runFold } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { WorkerWorld } from '../runs/worker-world.ts';

const second = 1000;
const hour = 3600 * second;

describe('a suspended step', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  const pipeline = async (
    steps: readonly unknown[],
    fields: Partial<TaskDefinition> = {},
  ): Promise<string> => {
    await world.task('t', [], { payload: { pipeline: [...steps] }, ...fields });
    return world.request('t');
  };

  /** Ends the only open wait of a step, like a callback. */
  const answer = async (runId: string, step: string, resumption: Resumption): Promise<void> => {
    await handle({
      store: world.world.store,
      stream: streams.run(runId),
      fold: runFold,
      decide: (state) => {
        const { waits } = requireRun(state);
        const wait = waits.find((each) => each.step === step);
        return [resumeStep(waits, wait?.wait_id ?? '', resumption)];
      },
      context: world.world.context(),
    });
    await world.world.idle();
  };

  const resultsOf = async (runId: string): Promise<Record<string, unknown>> => {
    const events = await world.eventsOf(runId);
    const ends = events.flatMap((event) => {
      if (event.type === 'RunStepCompleted') return [event.data];
      return event.type === 'RunSucceeded' || event.type === 'RunFailed' ? event.data.steps : [];
    });
    return Object.fromEntries(ends.map(({ step, result, error }) => [step, error ?? result]));
  };

  const callback = { id: 'c', uses: 'echo', wait_for: 'callback', with: '${callback.token}' };
  const by = { kind: 'callback' } as const;

  it('holds no slot, and continues the same attempt when its time has come', async () => {
    const one = await world.start('one', { slots: 1 });
    const runId = await pipeline([
      { uses: 'sleep', with: { seconds: 60 } },
      { uses: 'act', id: 'after' },
    ]);
    expect(await world.run(runId)).to.include({ state: 'waiting', lease_owner: null });
    expect(one.worker.active).to.equal(0);
    await world.clock.advance(60 * second - 1);
    expect(world.stepsOf(runId)).to.deep.equal([]);
    await world.clock.advance(1);
    expect(world.stepsOf(runId)).to.deep.equal(['after']);
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
    expect(await world.typesOf(runId)).to.include.members(['StepSuspended', 'Released']);
    expect(await resultsOf(runId)).to.deep.include({ step_0: { slept_seconds: 60 } });
  });

  it('wakes at its time on another worker, from the start of the step', async () => {
    const one = await world.start('one');
    const runId = await pipeline([{ uses: 'sleep', with: { seconds: 100 } }]);
    await world.clock.advance(40 * second);
    one.kill();
    await world.clock.advance(30 * second);
    await world.start('two');
    await world.clock.advance(30 * second);
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
    const [resumed] = (await world.eventsOf(runId)).filter(({ type }) => type === 'RunStepResumed');
    expect(resumed?.metadata.source).to.equal('two');
  });

  it('ends at once if its time passed while no worker lived', async () => {
    const one = await world.start('one');
    const runId = await pipeline([{ uses: 'sleep', with: { seconds: 50 } }]);
    one.kill();
    await world.clock.advance(hour);
    await world.start('two');
    await world.clock.advance(3 * second);
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
  });

  it('is canceled with its run, and ends only once', async () => {
    await world.start('one');
    const runId = await pipeline([{ uses: 'sleep', with: { seconds: 60 } }]);
    await world.cancel(runId);
    await world.clock.advance(120 * second);
    const types = await world.typesOf(runId);
    expect(types.slice(-2)).to.deep.equal(['StepResumed', 'Canceled']);
    expect(types.filter((type) => type === 'StepResumed')).to.have.lengthOf(1);
  });

  it('fails with its run at the timeout of the run', async () => {
    await world.start('one');
    const runId = await pipeline([{ uses: 'sleep', with: { seconds: 60 } }], {
      timeout_seconds: 30,
    });
    await world.clock.advance(31 * second);
    expect(await world.run(runId)).to.have.property('state', 'failed');
    expect((await world.typesOf(runId)).slice(-2)).to.deep.equal(['StepResumed', 'Failed']);
  });

  it('gets its result from a callback, whose token is masked', async () => {
    await world.start('one');
    const runId = await pipeline([callback, { id: 'e', uses: 'echo', with: '${steps.c.paid}' }]);
    expect(await world.run(runId)).to.have.property('state', 'waiting');
    await answer(runId, 'c', { by, result: { paid: true } });
    expect(await resultsOf(runId)).to.deep.equal({ c: { paid: true }, e: true });
  });

  it('fails with the error of a callback, or calls its tool again', async () => {
    await world.start('one');
    const runId = await pipeline([{ ...callback, max_retries: 1 }], { max_retries: 0 });
    await answer(runId, 'c', { by, error: 'no money', retryable: true });
    await world.clock.advance(second);
    expect(await world.run(runId)).to.have.property('state', 'waiting');
    await answer(runId, 'c', { by, error: 'still no money', retryable: true });
    expect(await world.run(runId)).to.have.property('state', 'failed');
    expect(await resultsOf(runId)).to.deep.equal({ c: 'still no money' });
  });

  it('accepts a callback that arrives before its tool has returned', async () => {
    await world.start('one');
    const runId = await pipeline([{ id: 'c', uses: 'hold', wait_for: 'callback' }]);
    expect(await world.run(runId)).to.have.property('state', 'running');
    await answer(runId, 'c', { by, result: 'early' });
    await world.let('one', runId, 'c');
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
    expect(await resultsOf(runId)).to.deep.equal({ c: 'early' });
    expect(await world.typesOf(runId)).not.to.include('Released');
  });

  it('calls its tool again if the worker died during the call, and earlier tokens stay valid', async () => {
    const one = await world.start('one');
    const runId = await pipeline([
      { id: 'c', uses: 'deaf', wait_for: 'callback', timeout_seconds: 600 },
    ]);
    one.kill();
    await world.start('two');
    await world.clock.advance(60 * second);
    await world.let('two', runId, 'c');
    const { state, waits } = await world.run(runId);
    expect(state).to.equal('waiting');
    const [wait] = waits;
    expect(wait?.waits_for).to.have.property('token_hashes').with.lengthOf(2);
    expect(new Set(world.effects.map(({ key }) => key)).size).to.equal(1);
  });

  it('resumes while other steps of its group run, and is recorded at once', async () => {
    await world.start('one');
    const group = [
      { id: 's', uses: 'sleep', with: { seconds: 5 } },
      { id: 'h', uses: 'hold' },
    ];
    const runId = await pipeline([{ parallel: group }]);
    expect(await world.typesOf(runId)).to.include('StepSuspended');
    await world.clock.advance(5 * second);
    expect(await resultsOf(runId)).to.deep.equal({ s: { slept_seconds: 5 } });
    expect(await world.run(runId)).to.have.property('state', 'running');
    await world.let('one', runId, 'h');
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
  });

  it('is stopped when another step of its group fails', async () => {
    await world.start('one');
    const group = [
      { id: 's', uses: 'sleep', with: { seconds: 50 } },
      { id: 'h', uses: 'hold' },
    ];
    const runId = await pipeline([
      { parallel: group, on_error: 'continue' },
      { id: 'e', uses: 'echo' },
    ]);
    expect(await world.run(runId))
      .to.have.property('waits')
      .with.lengthOf(1);
    world.gates.get(`one ${runId} h`)?.reject(new Error('out of paper'));
    await world.world.idle();
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
    await world.clock.advance(60 * second);
    const resumed = (await world.typesOf(runId)).filter((type) => type === 'StepResumed');
    expect(resumed).to.have.lengthOf(1);
  });

  it('lets at most max_parallel items run or wait at a time', async () => {
    await world.start('one');
    const runId = await pipeline([
      {
        id: 's',
        uses: 'sleep',
        for_each: [3, 3, 3],
        max_parallel: 2,
        with: { seconds: '${item}' },
      },
    ]);
    const open = async (): Promise<readonly string[]> =>
      (await world.run(runId)).waits.map(({ step }) => step);
    expect(await open()).to.deep.equal(['s[0]', 's[1]']);
    await world.clock.advance(3 * second);
    expect(await open()).to.deep.equal(['s[2]']);
    await world.clock.advance(3 * second);
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
  });

  it('delays only the steps that need it', async () => {
    await world.start('one');
    const runId = await pipeline([
      { id: 'slow', uses: 'sleep', with: { seconds: 10 } },
      { id: 'free', uses: 'act' },
      { id: 'last', uses: 'act', needs: ['slow', 'free'] },
    ]);
    expect(world.stepsOf(runId)).to.deep.equal(['free']);
    await world.clock.advance(10 * second);
    expect(world.stepsOf(runId)).to.deep.equal(['free', 'last']);
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
  });

  it('keeps a callback that arrived before its tool returned, even if the worker then dies', async () => {
    const one = await world.start('one');
    const runId = await pipeline([{ id: 'c', uses: 'deaf', wait_for: 'callback' }]);
    await answer(runId, 'c', { by, result: 'early' });
    one.kill();
    await world.start('two');
    await world.clock.advance(60 * second);
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
    expect(await resultsOf(runId)).to.deep.equal({ c: 'early' });
  });

  it('ends once, by whichever is first, if its callback arrives at its timeout', async () => {
    await world.start('one');
    const runId = await pipeline([{ ...callback, wait_seconds: 60 }], { max_retries: 0 });
    await world.clock.advance(60 * second - 1);
    const answered = answer(runId, 'c', { by, result: 'in time' }).catch((error: unknown) => error);
    await world.clock.advance(1);
    await answered;
    const resumed = (await world.eventsOf(runId)).flatMap((event) =>
      event.type === 'RunStepResumed' ? [event.data.by.kind] : [],
    );
    expect(resumed).to.have.lengthOf(1);
    const state = resumed[0] === 'callback' ? 'succeeded' : 'failed';
    expect(await world.run(runId)).to.have.property('state', state);
  });

  const decision = {
    by: { kind: 'approval' },
    result: { approved: false, by: 'a', comment: null, at: '2026-03-01T00:00:00.000Z' },
    error: 'rejected by ada',
    retryable: false,
  } as const;
  const approval = { id: 'a', uses: 'approval', with: { message: 'Pay?' }, max_retries: 2 };

  it('fails with the error of a rejection, without a retry', async () => {
    await world.start('one');
    const runId = await pipeline([approval, { id: 'e', uses: 'act' }], { max_retries: 3 });
    await answer(runId, 'a', decision);
    expect(await world.run(runId)).to.include({ state: 'failed', attempt: 1 });
    expect(await resultsOf(runId)).to.deep.equal({ a: 'rejected by ada' });
  });

  it('passes a rejection on to later steps if it continues on errors', async () => {
    await world.start('one');
    const runId = await pipeline([
      { ...approval, on_error: 'continue' },
      { id: 'e', uses: 'echo', with: '${steps.a.approved}' },
    ]);
    await answer(runId, 'a', decision);
    expect(await world.run(runId)).to.have.property('state', 'succeeded');
    expect(await resultsOf(runId)).to.deep.include({ e: false });
  });

  it('is no longer open for the second caller', async () => {
    await world.start('one');
    const runId = await pipeline([callback]);
    await answer(runId, 'c', { by, result: 1 });
    const again = answer(runId, 'c', { by, result: 2 });
    const error = await again.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).to.have.property('code', 'STATE_CONFLICT');
  });
});
