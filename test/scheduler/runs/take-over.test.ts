import { expect } from 'chai';
import { EventStoreError, type NewEvent } from '../../../domain/event-store.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { stepEnd } from '../../projections/recorded.ts';
import { deferred, type Deferred } from '../../support/signals.ts';
import { LEASE, WorkerWorld } from './worker-world.ts';

const second = 1000;

describe('taking over runs', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  /** A worker that died while a run of `a, hold:b, c` was at b. */
  const died = async (fields = {}): Promise<string> => {
    await world.task('t', ['a', 'hold:b', 'c'], fields);
    const one = await world.start('one');
    const runId = await world.request('t');
    expect(world.stepsOf(runId)).to.deep.equal(['a', 'b']);
    one.kill();
    return runId;
  };

  it('continues the run of a dead worker from its first unfinished step', async () => {
    const runId = await died();
    await world.start('two');
    await world.clock.advance(LEASE + 20 * second);
    expect(await world.run(runId)).to.include({ state: 'running', lease_owner: 'two', attempt: 1 });
    await world.let('two', runId, 'b');
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
    expect(world.stepsOf(runId)).to.deep.equal(['a', 'b', 'b', 'c']);
    const [first, again] = world.effects.filter(({ step }) => step === 'b');
    expect(again?.key).to.equal(first?.key);
  });

  it('is reported until no run of a dead worker is left that could not be freed', async () => {
    const runId = await died();
    const two = await world.start('two');
    let broken = true;
    two.store.onRead = (stream) => {
      if (broken && stream === `run-${runId}`) throw new EventStoreError('CORRUPT_EVENT', 'broken');
    };
    await world.clock.advance(2 * LEASE);
    const failed = 'could not free a run of a dead worker';
    const reported = (): string[] => two.lines.filter((line) => line.includes(failed));
    expect(reported()).to.deep.equal([failed]);
    broken = false;
    await world.clock.advance(LEASE);
    expect(await world.run(runId)).to.include({ state: 'running', lease_owner: 'two' });
    expect(reported()).to.deep.equal([failed, `succeeded again after: ${failed}`]);
  });

  it('leaves a run alone while the heartbeat lasts', async () => {
    const runId = await died();
    await world.start('two');
    await world.clock.advance(LEASE - 1);
    expect(await world.run(runId)).to.include({ state: 'running', lease_owner: 'one' });
  });

  it('never touches runs of live workers', async () => {
    await world.task('t', ['hold:a']);
    await world.start('one');
    const runId = await world.request('t');
    await world.start('two');
    await world.clock.advance(10 * LEASE);
    expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Started']);
    await world.let('one', runId, 'a');
    expect(await world.run(runId)).to.include({ state: 'succeeded' });
  });

  it('does not treat a worker as dead when the coordination store has lost its heartbeat', async () => {
    await world.task('t', ['hold:a']);
    const one = await world.start('one');
    const runId = await world.request('t');
    const two = await world.start('two');
    await world.clock.advance(2 * second);
    // As if its file had been deleted: no worker is known until its next heartbeat.
    await world.world.coordination.forget('one');
    expect(await two.takeOver.pass()).to.equal(0);
    await world.clock.advance(LEASE);
    expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Started']);
    expect(one.membership.alive).to.equal(true);
  });

  it('is done once by one of several processes', async () => {
    const runId = await died();
    await world.start('two');
    await world.start('three');
    await world.start('four');
    await world.clock.advance(LEASE + 20 * second);
    const types = await world.typesOf(runId);
    expect(types.filter((type) => type === 'Interrupted')).to.have.lengthOf(1);
    expect(types.filter((type) => type === 'Started')).to.have.lengthOf(2);
  });

  it('frees the runs of a worker in parallel', async () => {
    await world.task('t', ['hold:a']);
    const one = await world.start('one', { slots: 5 });
    const runs = [];
    for (let n = 0; n < 5; n += 1) runs.push(await world.request('t'));
    one.kill();
    const two = await world.start('two', { slots: 5 });
    let [now, most] = [0, 0];
    const isFreed = (events: readonly NewEvent[]): boolean => events[0]?.type === 'RunInterrupted';
    two.store.onAppend = (_, events) => {
      if (isFreed(events)) now += 1;
      most = Math.max(most, now);
    };
    two.store.afterAppend = (_, events) => {
      if (isFreed(events)) now -= 1;
    };
    await world.clock.advance(LEASE + 20 * second);
    for (const runId of runs) expect(await world.run(runId)).to.include({ lease_owner: 'two' });
    expect(most).to.equal(5);
  });

  describe('of a run whose workers keep dying', () => {
    const dieTimes = async (runId: string, times: number): Promise<void> => {
      for (let n = 0; n < times; n += 1) {
        const next = await world.start(`next-${n}`);
        await world.clock.advance(LEASE + 20 * second);
        expect(await world.run(runId)).to.include({ lease_owner: `next-${n}`, attempt: 1 });
        next.kill();
      }
    };

    it('continues it five times, and counts the sixth as a failed attempt', async function () {
      this.timeout(180_000);
      const runId = await died({ max_retries: 1 });
      await dieTimes(runId, 5);
      await world.start('last');
      await world.clock.advance(LEASE + 15 * second);
      const types = await world.typesOf(runId);
      expect(types.filter((type) => type === 'Interrupted')).to.have.lengthOf(5);
      expect(types.filter((type) => type === 'AttemptFailed')).to.have.lengthOf(1);
      await world.clock.advance(20 * second);
      await world.let('last', runId, 'b');
      expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 2 });
      expect(world.stepsOf(runId).filter((step) => step === 'a')).to.have.lengthOf(1);
    });

    it('fails it when no retry is left', async function () {
      this.timeout(180_000);
      const runId = await died({ max_retries: 0 });
      await dieTimes(runId, 5);
      await world.start('last');
      await world.clock.advance(LEASE + 20 * second);
      expect(await world.run(runId)).to.include({ state: 'failed', attempt: 1 });
      expect((await world.eventsOf(runId)).at(-1)?.data).to.include({
        error: 'the run lost its worker 6 times',
      });
    });

    it('pauses its task at the failure limit', async function () {
      this.timeout(180_000);
      const runId = await died({ max_retries: 0, pause_after_failures: 1 });
      await dieTimes(runId, 5);
      const last = await world.start('last');
      last.store.afterAppend = async (_, events) => {
        if (events.some(({ type }) => type === 'RunFailed')) {
          await world.world.project([runsProjection]);
        }
      };
      await world.clock.advance(LEASE + 20 * second);
      expect(await world.run(runId)).to.include({ state: 'failed' });
      expect(await world.world.task('t')).to.include({ status: 'paused' });
    });
  });

  describe('from a worker that is still running', () => {
    let hearing: Deferred<void>;

    beforeEach(() => {
      hearing = deferred();
    });

    afterEach(() => {
      hearing.resolve();
    });

    /** Taken from a worker whose heartbeat failed while its step continues. */
    const takenFromOne = async (step: 'hold' | 'deaf', deafToTheLog: boolean): Promise<string> => {
      await world.task('t', ['a', `${step}:b`, 'c']);
      const one = await world.start('one');
      const runId = await world.request('t');
      if (deafToTheLog) {
        one.store.onMessage = () => hearing.promise;
        one.store.following.clear();
      }
      one.reachable.away = true;
      await world.start('two');
      await world.clock.advance(LEASE + 20 * second);
      expect(await world.run(runId)).to.include({ lease_owner: 'two' });
      return runId;
    };

    const finishesByTwo = async (runId: string): Promise<void> => {
      await world.let('two', runId, 'b');
      await world.clock.advance(second);
      expect(await world.run(runId)).to.include({ state: 'succeeded' });
      const after = (await world.eventsOf(runId)).slice(
        (await world.typesOf(runId)).indexOf('Interrupted'),
      );
      expect(after.map(({ metadata }) => metadata.source)).to.deep.equal(after.map(() => 'two'));
      expect(await world.typesOf(runId)).to.satisfy(
        (types: string[]) => types.filter((type) => type === 'Succeeded').length === 1,
      );
    };

    it('stops the work as soon as the worker sees it', async () => {
      const runId = await takenFromOne('hold', false);
      expect(world.effects.some(({ worker, step }) => worker === 'one' && step === 'c')).to.equal(
        false,
      );
      await finishesByTwo(runId);
    });

    it("rejects the worker's steps, even when it has seen all later events", async () => {
      const runId = await takenFromOne('deaf', false);
      await world.let('one', runId, 'b');
      expect(world.effects.some(({ worker, step }) => worker === 'one' && step === 'c')).to.equal(
        false,
      );
      await finishesByTwo(runId);
    });

    it("rejects the worker's steps when it has seen no later event", async () => {
      const runId = await takenFromOne('deaf', true);
      await world.let('one', runId, 'b');
      await finishesByTwo(runId);
    });

    it('rejects a step and an end of an execution that ignores its signal', async () => {
      await world.task('t', ['a', 'hold:b']);
      const goOn = deferred();
      const said: unknown[] = [];
      const one = await world.start('one', {
        runPipeline: async ({ record }) => {
          await goOn.promise;
          const late = { type: 'RunStepCompleted', data: stepEnd('late') } as const;
          await record([late]).catch((error: unknown) => said.push(error));
          return { kind: 'succeeded', steps: [], output: {} };
        },
      });
      const runId = await world.request('t');
      one.reachable.away = true;
      await world.start('two');
      // Only until it is taken over: work that ignores its signal is abandoned after ten seconds.
      for (let n = 0; n < 60 && (await world.run(runId)).lease_owner !== 'two'; n += 1) {
        await world.clock.advance(second);
      }
      const before = await world.typesOf(runId);
      expect(before.slice(-2)).to.include('Started');
      goOn.resolve();
      await world.world.idle();
      expect(said).to.have.lengthOf(1);
      expect(await world.typesOf(runId)).to.deep.equal(before);
      await world.let('two', runId, 'b');
      expect(await world.run(runId)).to.include({ state: 'succeeded' });
    });

    it('does not return the run when the worker is back', async () => {
      const runId = await takenFromOne('deaf', false);
      const [one] = world.workers;
      if (one !== undefined) one.reachable.away = false;
      await world.clock.advance(LEASE);
      await world.let('one', runId, 'b');
      await world.clock.advance(LEASE);
      expect(await world.run(runId)).to.include({ state: 'running', lease_owner: 'two' });
      await finishesByTwo(runId);
    });
  });
});
