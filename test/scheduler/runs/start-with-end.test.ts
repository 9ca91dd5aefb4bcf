import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import { cancelRunCommand } from '../../../domain/tasks/task-commands.ts';
import { deferred } from '../../support/signals.ts';
import { START } from '../scheduler-world.ts';
import { WorkerWorld, type WorkerProcess } from './worker-world.ts';

const second = 1000;

describe('a run whose start is written with its end', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  const start = (id: string): Promise<WorkerProcess> =>
    world.start(id, { isInstant: () => true, startsWithEnd: () => true });

  /** Types of the events of each append to streams of runs, from now on. */
  const appendsOf = (worker: WorkerProcess): string[][] => {
    const appends: string[][] = [];
    worker.store.onAppend = (stream, events) => {
      if (stream.startsWith('run-')) appends.push(events.map(({ type }) => type));
    };
    return appends;
  };

  it('is written in one append', async () => {
    await world.task('t', ['quick:a', 'quick:b']);
    const appends = appendsOf(await start('one'));
    const runId = await world.request('t');
    expect(appends).to.deep.equal([['RunStarted', 'RunSucceeded']]);
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1, revision: 2 });
    expect(world.stepsOf(runId)).to.deep.equal(['a', 'b']);
    const [, started, succeeded] = await world.eventsOf(runId);
    if (succeeded?.type !== 'RunSucceeded') throw new Error('the run has not succeeded');
    expect(started?.data).to.include({ worker: 'one', attempt: 1 });
    expect(succeeded.data).to.include({ attempt: 1, started_at: toIso(START) });
    expect(succeeded.data.steps.map(({ attempt }) => attempt)).to.deep.equal([1, 1]);
  });

  it('records when each event occurred', async () => {
    await world.task('t', ['quick:a']);
    world.acts.set('a', () => world.clock.jumpTo(START + second));
    await start('one');
    const runId = await world.request('t');
    const times = (await world.eventsOf(runId)).map(({ metadata }) => metadata.occurredAt);
    expect(times).to.deep.equal([toIso(START), toIso(START), toIso(START + second)]);
  });

  it('yields the event loop, however many such runs are queued', async () => {
    await world.task('t', ['quick:a']);
    const worker = await start('one');
    // From here on its task is in memory, and its runs are instant.
    await world.request('t');
    let inTurn = 0;
    let most = 0;
    world.acts.set('a', () => {
      if (inTurn === 0) setImmediate(() => (inTurn = 0));
      inTurn += 1;
      most = Math.max(most, inTurn);
      const until = performance.now() + 4;
      while (performance.now() < until);
    });
    const runs = await Promise.all(Array.from({ length: 20 }, () => world.request('t')));
    for (const runId of runs) expect(world.stepsOf(runId)).to.deep.equal(['a']);
    expect(worker.queue.size).to.equal(0);
    expect(most).to.be.lessThan(5);
  });

  it('is retried after its back-off, with a start of its own', async () => {
    await world.task('t', ['quick:a']);
    world.fails('a', 1);
    const appends = appendsOf(await start('one'));
    const runId = await world.request('t');
    await world.clock.advance(10 * second);
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 2 });
    expect(appends).to.deep.equal([
      ['RunStarted', 'RunStepCompleted', 'RunAttemptFailed'],
      ['RunStarted'],
      ['RunSucceeded'],
    ]);
  });

  it('writes its start before it waits for anything', async () => {
    await world.task('t', ['quick:a']);
    const gate = deferred();
    world.acts.set('a', () => gate.promise);
    const appends = appendsOf(await start('one'));
    const runId = await world.request('t');
    expect(appends).to.deep.equal([['RunStarted']]);
    expect(await world.run(runId)).to.include({ state: 'running' });
    gate.resolve();
    await world.world.idle();
    expect(appends).to.deep.equal([['RunStarted'], ['RunSucceeded']]);
  });

  it('writes its start before it records a step', async () => {
    await world.task('t', ['quick:a', 'act:b']);
    const appends = appendsOf(await start('one'));
    const runId = await world.request('t');
    expect(await world.run(runId)).to.include({ state: 'succeeded' });
    expect(appends).to.deep.equal([['RunStarted'], ['RunStepCompleted'], ['RunSucceeded']]);
  });

  it('leaves no trace when the process dies before the append, and another process executes it', async () => {
    await world.task('t', ['quick:a']);
    const one = await start('one');
    one.store.dieAt(1, 'before');
    const runId = await world.request('t');
    one.kill();
    expect(await world.typesOf(runId)).to.deep.equal(['Requested']);
    await start('two');
    await world.clock.advance(60 * second);
    expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Started', 'Succeeded']);
    expect(await world.run(runId)).to.include({ attempt: 1, interruptions: 0 });
  });

  it('is in the log once when the response is lost', async () => {
    await world.task('t', ['quick:a']);
    const one = await start('one');
    let lost = 0;
    one.store.afterAppend = () => {
      if (lost++ === 0) throw new EventStoreError('OUTCOME_UNKNOWN', 'the response was lost');
    };
    const runId = await world.request('t');
    await world.clock.advance(second);
    expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Started', 'Succeeded']);
    expect(world.stepsOf(runId)).to.deep.equal(['a']);
  });

  it('is not written after a cancellation', async () => {
    await world.task('t', ['quick:a']);
    const one = await start('one');
    one.store.onAppend = async (stream) => {
      one.store.onAppend = () => {};
      const context = world.world.context();
      await cancelRunCommand(world.world.store, stream.slice('run-'.length), context);
    };
    const runId = await world.request('t');
    await world.clock.advance(second);
    expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Canceled']);
    expect(one.queue.size).to.equal(0);
  });

  it('fails, with its start, when the log rejects its end', async () => {
    await world.task('t', ['quick:a']);
    await world.start('one', {
      startsWithEnd: () => true,
      runPipeline: () => ({ kind: 'succeeded', steps: [], output: { text: 'x'.repeat(600_000) } }),
    });
    const runId = await world.request('t');
    expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Started', 'Failed']);
    const end = (await world.eventsOf(runId)).at(-1);
    expect(end?.data).to.include({ attempt: 1 });
  });

  it('writes its start alone when it has started before', async () => {
    await world.task('t', ['hold:a']);
    const one = await start('one');
    const runId = await world.request('t');
    one.kill();
    const appends = appendsOf(await start('two'));
    await world.clock.advance(60 * second);
    await world.let('two', runId, 'a');
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
    expect(appends.filter(([type]) => type === 'RunStarted')).to.deep.equal([['RunStarted']]);
  });

  describe('and which continues after a wait', () => {
    const sleep = { uses: 'sleep', with: { seconds: 60 } };

    it('is written in one append', async () => {
      const appends = appendsOf(await start('one'));
      await world.task('t', [], { payload: { pipeline: [sleep] } });
      const runId = await world.request('t');
      await world.clock.advance(60 * second);
      expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
      expect(appends.slice(-2)).to.deep.equal([['RunStepResumed'], ['RunStarted', 'RunSucceeded']]);
    });

    it('writes its start separately once a worker has died of it', async () => {
      const one = await world.start('one');
      const last = { id: 'b', uses: 'quick' };
      await world.task('t', [], { payload: { pipeline: [sleep, last] } });
      const runId = await world.request('t');
      world.acts.set('b', () => one.kill());
      await world.clock.advance(60 * second);
      world.acts.clear();
      const appends = appendsOf(await start('two'));
      await world.clock.advance(60 * second);
      expect(await world.run(runId)).to.include({ state: 'succeeded', interruptions: 1 });
      expect(appends).to.deep.include(['RunStarted']);
    });
  });
});
