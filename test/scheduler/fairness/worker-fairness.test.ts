import { expect } from 'chai';
import { requestManualRun } from '../../../domain/tasks/task-commands.ts';
import { slotLimits } from '../../../scheduler/fairness/slot-limits.ts';
import { WorkerWorld } from '../runs/worker-world.ts';

const [ALICE, BOB, CAROL] = [
  '00000000-0000-4000-8000-00000000000a',
  '00000000-0000-4000-8000-00000000000b',
  '00000000-0000-4000-8000-00000000000c',
];

describe('a worker of several agents', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
    await world.task('alice', ['hold:a'], { created_by: ALICE });
    await world.task('bob', ['hold:a'], { created_by: BOB });
    await world.task('carol', ['hold:a'], { created_by: CAROL, priority: 9 });
  });
  afterEach(async () => {
    await world.close();
  });

  async function requestMany(taskId: string, count: number): Promise<void> {
    const task = await world.world.task(taskId);
    const { store } = world.world;
    await Promise.all(
      Array.from({ length: count }, () =>
        requestManualRun(store, taskId, task, world.world.context()),
      ),
    );
    await world.world.idle();
  }

  /** The runs that have started, in order. */
  const begun = (): readonly string[] => world.effects.map(({ run }) => run);
  const finish = (run: string): Promise<void> => world.let('one', run, 'a');
  const isBegun = (run: string): boolean => begun().includes(run);

  it("starts another agent's run when one job ends, however many runs of one agent wait", async () => {
    await world.start('one', { slots: 2 });
    await requestMany('alice', 300);
    const urgentLast = await world.request('carol');
    const other = await world.request('bob');
    expect(begun()).to.have.lengthOf(2);
    await finish(begun()[0] ?? '');
    await finish(begun()[1] ?? '');
    expect([isBegun(urgentLast), isBegun(other)]).to.deep.equal([true, true]);
  });

  it('takes turns even with an agent that has just had one', async () => {
    await world.start('one', { slots: 1 });
    await requestMany('alice', 20);
    await requestMany('bob', 20);
    for (let n = 0; n < 9; n += 1) await finish(begun().at(-1) ?? '');
    const owners = await Promise.all(
      begun().map(async (run) => (await world.run(run)).request.created_by),
    );
    for (let n = 2; n < 10; n += 1) expect(owners[n]).to.not.equal(owners[n - 1]);
  });

  it('keeps slots for others while 64 long tool calls of one agent run and wait', async () => {
    const one = await world.start('one', { slots: 64, limits: slotLimits(64, 56) });
    await requestMany('alice', 70);
    expect(one.worker.active).to.equal(56);
    const others = [await world.request('bob'), await world.request('carol')];
    for (const run of others) expect(await world.run(run)).to.include({ state: 'running' });
    expect(one.worker.slotUse.limits_reached).to.deep.equal([
      { scope: 'agent', id: ALICE, taken: 56, limit: 56 },
    ]);
    // The end of each of its runs lets the next one start.
    await finish(begun()[0] ?? '');
    expect(one.worker.active).to.equal(58);
  });

  it('limits the slots that the agents of one namespace hold together', async () => {
    const limits = { perAgent: 3, perNamespace: 4 };
    const one = await world.start('one', { slots: 8, limits });
    await requestMany('alice', 5);
    await requestMany('bob', 5);
    expect(one.worker.active).to.equal(4);
    const reached = one.worker.slotUse.limits_reached?.map(({ scope, id }) => [scope, id]);
    expect(reached).to.deep.equal([
      ['namespace', 'default'],
      ['agent', ALICE],
    ]);
    await finish(begun()[3] ?? '');
    expect(one.worker.active).to.equal(4);
  });

  it('starts instant runs of an agent that holds all its slots', async () => {
    await world.task('quick', ['quick:q'], { created_by: ALICE, priority: 1 });
    const isInstant = (run: { readonly taskId: string }): boolean => run.taskId === 'quick';
    await world.start('one', { slots: 8, limits: { perAgent: 2, perNamespace: 8 }, isInstant });
    await requestMany('alice', 5);
    const quick = await world.request('quick');
    expect(await world.run(quick)).to.include({ state: 'succeeded' });
  });

  it('serves each agent fairly beside another worker', async () => {
    const limits = { perAgent: 3, perNamespace: 4 };
    await world.start('one', { slots: 4, limits });
    await world.start('two', { slots: 4, limits });
    await requestMany('alice', 40);
    await world.clock.advance(1000);
    expect(begun()).to.have.lengthOf(6);
    const other = await world.request('bob');
    await world.clock.advance(1000);
    expect(isBegun(other)).to.equal(true);
  });

  it('leaves runs over the quota of a minute in the queue, and starts them even after a crash', async () => {
    await world.task('short', ['s'], { created_by: BOB });
    const quotas = { default: { runs_per_minute: 3 } };
    const one = await world.start('one', { quotas });
    await requestMany('short', 7);
    expect(begun()).to.have.lengthOf(3);
    await one.stop();
    await world.start('two', { quotas });
    expect(begun()).to.have.lengthOf(3);
    await world.clock.advance(60_000);
    expect(begun()).to.have.lengthOf(6);
    await world.clock.advance(60_000);
    expect(new Set(begun()).size).to.equal(7);
  });
});
