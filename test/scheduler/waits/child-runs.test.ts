import { expect } from 'chai';
import { manualRunId } from '../../../domain/ids.ts';
import { retryFailedRun } from '../../../domain/runs/run-retry.ts';
import { requestManualRun } from '../../../domain/tasks/task-commands.ts';
import { WaitsWorld } from './waits-world.ts';

const second = 1000;

/** A step that waits for a run of the task `child`. */
const call = (more: object = {}) => ({
  id: 'call',
  uses: 'tasks.run',
  with: { task_id: 'child', wait: true, ...more },
});

describe('a step that waits for a child run', () => {
  let world: WaitsWorld;

  beforeEach(async () => {
    world = await WaitsWorld.open();
    await world.task('parent', [call(), { id: 'after', uses: 'echo', with: { is: 1 } }]);
  });
  afterEach(() => world.close());

  const child = (...pipeline: readonly object[]): Promise<void> => world.task('child', pipeline);
  const hold = { id: 'hold', uses: 'hold', timeout_seconds: 86_400 };

  const childOf = async (): Promise<string> => {
    const [id] = await world.runsOf('child');
    if (id === undefined) throw new Error('there is no child');
    return id;
  };

  it("has the child's output as its result", async () => {
    await child({ id: 'one', uses: 'echo', with: { n: 1 }, save_as: 'first' });
    await world.start('a');
    const parent = await world.request('parent');
    expect((await world.untilEnded(parent)).state).to.equal('succeeded');
    const childId = await childOf();
    const [resumed] = await world.resumptionsOf(parent);
    expect(resumed?.by).to.deep.equal({ kind: 'run', id: childId });
    expect(resumed?.result).to.deep.equal({
      steps: { first: { n: 1 } },
      summary: { total_steps: 1, executed_steps: 1, skipped_steps: 0 },
    });
    const { request } = await world.run(childId);
    expect(request.parent).to.deep.equal({ run_id: parent, step: 'call' });
  });

  it('holds no slot while the child runs', async () => {
    await child(hold);
    const process = await world.start('a');
    const parent = await world.request('parent');
    await world.untilState(parent, 'waiting');
    expect(process.worker.active).to.equal(1);
    world.gates.get('hold')?.resolve();
    expect((await world.untilEnded(parent)).state).to.equal('succeeded');
  });

  it("fails with the child's error, however many retries the parent has", async () => {
    await child({ id: 'one', uses: 'fail', with: { message: 'out of paper' } });
    await world.task('stubborn', [{ ...call(), max_retries: 3 }], { max_retries: 2 });
    await world.start('a');
    const parent = await world.request('stubborn');
    expect((await world.untilEnded(parent)).state).to.equal('failed');
    const [resumed, ...more] = await world.resumptionsOf(parent);
    expect(more).to.deep.equal([]);
    expect(resumed?.error).to.equal(`run ${await childOf()} failed: out of paper`);
    expect(await world.runsOf('child')).to.have.lengthOf(1);
  });

  it('fails when the child is canceled', async () => {
    await child(hold);
    await world.start('a');
    const parent = await world.request('parent');
    await world.untilState(parent, 'waiting');
    await world.cancel(await childOf());
    await world.untilEnded(parent);
    const [resumed] = await world.resumptionsOf(parent);
    expect(resumed?.error).to.equal(`run ${await childOf()} was canceled`);
  });

  it('fails with the reason when the child is skipped', async () => {
    await world.task('child', [hold], { overlap_policy: 'skip' });
    await world.start('a');
    const other = await world.request('child');
    const parent = await world.request('parent');
    await world.untilEnded(parent);
    const [resumed] = await world.resumptionsOf(parent);
    const [, skipped] = await world.runsOf('child');
    expect(resumed?.error).to.equal(`run ${skipped} was skipped: overlap with run ${other}`);
    const { request } = await world.run(String(skipped));
    expect(request.parent?.run_id).to.equal(parent);
  });

  it('is not changed by a retry of the child', async () => {
    await child({ id: 'one', uses: 'fail', with: { message: 'out of paper' } });
    await world.start('a');
    const parent = await world.request('parent');
    await world.untilEnded(parent);
    const { store } = world.world;
    const task = await world.world.task('child');
    const context = world.world.context();
    const runId = await childOf();
    const retried = await retryFailedRun({ store, runId, from: 'start', task, context });
    expect((await world.run(retried.runId)).request.parent).to.equal(null);
    expect((await world.run(parent)).state).to.equal('failed');
  });

  describe('whose run is stopped', () => {
    beforeEach(() => child(hold));

    it('cancels the child', async () => {
      await world.start('a');
      const parent = await world.request('parent');
      await world.untilState(parent, 'waiting');
      await world.cancel(parent);
      const { state } = await world.untilEnded(await childOf());
      expect(state).to.equal('canceled');
    });

    it('cancels the children of the child', async () => {
      await world.task('top', [{ ...call(), with: { task_id: 'parent', wait: true } }]);
      await world.start('a');
      const top = await world.request('top');
      await world.untilState(top, 'waiting');
      const [parent = ''] = await world.runsOf('parent');
      await world.untilState(parent, 'waiting');
      await world.cancel(top);
      await world.untilEnded(await childOf());
      expect((await world.run(parent)).state).to.equal('canceled');
      expect((await world.run(await childOf())).state).to.equal('canceled');
    });

    it('cancels the child when the run times out', async () => {
      await world.task('brief', [call()], { timeout_seconds: 5 });
      await world.start('a');
      const parent = await world.request('brief');
      await world.untilState(parent, 'waiting');
      await world.clock.advance(6 * second);
      expect((await world.untilEnded(await childOf())).state).to.equal('canceled');
      expect((await world.run(parent)).state).to.equal('failed');
      expect((await world.typesOf(parent)).slice(-2)).to.deep.equal(['StepResumed', 'Failed']);
    });

    it('lets the child continue after the limit of the wait', async () => {
      await world.task('brief', [call({ timeout_seconds: 5 })]);
      await world.start('a');
      const parent = await world.request('brief');
      await world.untilEnded(parent);
      const [resumed] = await world.resumptionsOf(parent);
      expect(resumed?.by).to.deep.equal({ kind: 'timeout' });
      await world.clock.advance(100 * second);
      expect((await world.run(await childOf())).state).to.equal('running');
    });

    it('does not cancel an existing run that a duplicate request returned', async () => {
      await world.task('once', [hold], { dedupe_key: 'k' });
      await world.task('calls', [call({ task_id: 'once' })]);
      await world.start('a');
      const other = await world.request('once');
      const parent = await world.request('calls');
      await world.untilState(parent, 'waiting');
      await world.cancel(parent);
      await world.clock.advance(60 * second);
      expect((await world.run(other)).state).to.equal('running');
    });
  });

  describe('and a process that dies', () => {
    const outcomes = async (parent: string): Promise<unknown> => {
      const { state } = await world.untilEnded(parent);
      const resumed = await world.resumptionsOf(parent);
      const children = await world.runsOf('child');
      return { state, resumed: resumed.map(({ by }) => by.kind), children: children.length };
    };
    const once = { state: 'succeeded', resumed: ['run'], children: 1 };

    const points = [
      ['RunStepSuspended', 'parent'],
      ['RunRequested', 'child'],
      ['RunSucceeded', 'child'],
      ['RunStepResumed', 'parent'],
      ['RunSucceeded', 'parent'],
    ] as const;
    for (const [type, whose] of points) {
      for (const when of ['before', 'after'] as const) {
        it(`ends once, ${when} ${type} of the ${whose} is written`, async () => {
          await child({ id: 'one', uses: 'echo', with: { n: 1 } });
          const first = await world.start('a');
          let parent = '';
          first.dieAt(when, (stream, events) => {
            const isOf = stream === `run-${parent}` ? 'parent' : 'child';
            const isRun = parent !== '' && stream.startsWith('run-');
            return isRun && isOf === whose && events.some((event) => event.type === type);
          });
          parent = manualRunId('parent', 'by hand');
          const { store } = world.world;
          const context = { ...world.world.context(), commandId: 'by hand' };
          await requestManualRun(store, 'parent', await world.world.task('parent'), context);
          await world.until(() => Promise.resolve(first.store.dead));
          await world.start('b');
          expect(await outcomes(parent)).to.deep.equal(once);
        });
      }
    }

    it('cancels the child of a run that was canceled in the meantime', async () => {
      await child(hold);
      const first = await world.start('a');
      const parent = await world.request('parent');
      await world.untilState(parent, 'waiting');
      first.kill();
      await world.cancel(parent);
      await world.start('b');
      expect((await world.untilEnded(await childOf())).state).to.equal('canceled');
    });
  });
});
