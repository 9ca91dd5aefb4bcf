import { expect } from 'chai';
import { readKey } from '../../../domain/keys/key-stream.ts';
import { streams } from '../../../domain/streams.ts';
import { cancelRunCommand } from '../../../domain/tasks/task-commands.ts';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { LiveTask } from '../../../domain/tasks/task.ts';
import { affinityOf } from '../../../scheduler/keys/key-names.ts';
import { preferredWorker } from '../../../scheduler/runs/preferred-worker.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { KeyWorld, OWNER, faultsOfKeys, soon, type WorkerProcess } from './key-harness.ts';

const name = (key: string) => ({ kind: 'concurrency', owner: OWNER, key }) as const;

const numbered = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `r${String(index).padStart(2, '0')}`);

describe('runs that want a busy key', () => {
  let world: KeyWorld;
  beforeEach(async () => {
    world = await KeyWorld.open();
  });
  afterEach(() => world.close());

  const waiters = async (key: string): Promise<readonly string[]> =>
    ((await readKey(world.store, name(key)))?.waiters ?? []).map(({ run_id }) => run_id);

  it("wait without a worker's slot, and are recorded together", async () => {
    await world.task('a', { concurrency_key: 'printer' });
    const runs = numbered(12);
    for (const run of runs) await world.request('a', run);
    const process = await world.process('w1', { slots: 1 });
    await soon(() => expect(process.running()).to.deep.equal(['r00']));
    await soon(async () => expect(await waiters('printer')).to.deep.equal(runs.slice(1)));
    const stream = streams.key('concurrency', OWNER, 'printer');
    const types = (await world.store.readStream(stream)).map(({ type }) => type);
    expect(types[0]).to.equal('KeyHeld');
    // The runs of one turn share one event; one run may have asked before.
    expect(types.filter((type) => type === 'KeyWaited').length).to.be.within(1, 3);
    for (const run of runs) {
      await soon(() => expect(process.running()).to.deep.equal([run]));
      process.finish(run);
    }
    await world.reaches('r11', 'succeeded');
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
  });

  it('do not block runs without a key', async () => {
    await world.task('a', { concurrency_key: 'printer' });
    await world.task('plain');
    const process = await world.process('w1', { slots: 2 });
    await world.request('a', 'r1');
    await soon(() => expect(process.running()).to.deep.equal(['r1']));
    for (const run of numbered(40)) await world.request('a', run);
    await world.request('plain', 'p1', { priority: 9 });
    await soon(() => expect(process.running()).to.have.members(['r1', 'p1']));
  });

  it('end at once when they are canceled, recorded or not', async () => {
    await world.task('a', { concurrency_key: 'printer' });
    const process = await world.process('w1', { slots: 1 });
    const runs = numbered(30);
    for (const run of runs) await world.request('a', run);
    await soon(() => expect(process.running()).to.deep.equal(['r00']));
    await soon(async () => expect(await waiters('printer')).to.deep.equal(runs.slice(1, 21)));
    for (const run of ['r01', 'r28']) {
      await cancelRunCommand(world.store, run, world.context(`cancel ${run}`));
    }
    await soon(async () => expect(await waiters('printer')).to.not.include('r01'));
    process.finish('r00');
    await soon(() => expect(process.running()).to.deep.equal(['r02']));
    expect(await world.run('r28')).to.include({ state: 'canceled' });
  });

  it('move to the preferred worker of their key, and stay there', async function () {
    this.timeout(180_000);
    const workers = ['w1', 'w2'];
    const key = Array.from({ length: 50 }, (_, index) => `key ${String(index)}`).find(
      (text) => preferredWorker(streams.key('concurrency', OWNER, text), workers) === 'w2',
    );
    if (key === undefined) throw new Error('w2 is the preferred worker of no key');
    await world.task('a', { concurrency_key: key });
    const runs = numbered(40);
    const first = await world.process('w1');
    for (const run of runs) await world.request('a', run);
    await soon(() => expect(first.running()).to.deep.equal(['r00']));
    const second = await world.process('w2');
    for (const { membership } of [first, second]) {
      await soon(() => expect([...membership.withRole('worker')].sort()).to.deep.equal(workers));
    }
    const processes: readonly WorkerProcess[] = [first, second];
    for (const run of runs) {
      await soon(() =>
        expect(processes.flatMap((process) => process.running())).to.deep.equal([run]),
      );
      processes.find((process) => process.running().includes(run))?.finish(run);
    }
    await world.reaches('r39', 'succeeded');
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
    expect(second.executed).to.not.deep.equal([]);
    expect([...first.executed, ...second.executed]).to.deep.equal(runs);
  });
});

describe('the preferred worker of a run', () => {
  const run = { id: 'r1', taskId: 'a' } as QueuedRun;
  const task = (changes: Partial<TaskDefinition>): LiveTask =>
    ({ definition: { ...taskDefaults, created_by: OWNER, ...changes } }) as unknown as LiveTask;

  it('depends on the key if its limit is 1, and otherwise on the run', () => {
    const stream = streams.key('concurrency', OWNER, 'printer');
    expect(affinityOf(run, task({ concurrency_key: 'printer' }))).to.equal(stream);
    const two = task({ concurrency_key: 'printer', concurrency_limit: 2 });
    expect(affinityOf(run, two)).to.equal('r1');
    expect(affinityOf(run, task({}))).to.equal('r1');
    expect(affinityOf(run, undefined)).to.equal('r1');
  });
});
