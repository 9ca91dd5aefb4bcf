import { expect } from 'chai';
import { changeKey, readKey } from '../../../domain/keys/key-stream.ts';
import { MAX_WAITERS, holdKey, releaseAll, type KeyName } from '../../../domain/keys/key.ts';
import { streams } from '../../../domain/streams.ts';
import { pauseTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { GRANT_LIFETIME } from '../../../scheduler/keys/key-handoff.ts';
import { TRUNCATE_EVERY } from '../../../scheduler/keys/key-watch.ts';
import { KeyWorld, OWNER, faultsOfKeys, soon } from './key-harness.ts';

const printer: KeyName = { kind: 'concurrency', owner: OWNER, key: 'printer' };

describe('the waiters of a concurrency key', () => {
  let world: KeyWorld;
  beforeEach(async () => {
    world = await KeyWorld.open();
    await world.task('a', { concurrency_key: 'printer' });
  });
  afterEach(() => world.close());

  const holders = async (): Promise<readonly string[]> =>
    ((await readKey(world.store, printer))?.holders ?? []).map(({ run_id }) => run_id);
  const waiters = async (): Promise<readonly string[]> =>
    ((await readKey(world.store, printer))?.waiters ?? []).map(({ run_id }) => run_id);

  it('advance with one append of the key for each run', async () => {
    const process = await world.process('w1');
    // A granted run must start within a second. Here time stands still, so no grant expires.
    const now = world.clock.now();
    world.clock.now = () => now;
    const runs = Array.from({ length: 12 }, (_, index) => `r${String(index).padStart(2, '0')}`);
    for (const run of runs) await world.request('a', run);
    await soon(async () => expect(await waiters()).to.have.lengthOf(11));
    const stream = streams.key('concurrency', OWNER, 'printer');
    const revision = async (): Promise<number> =>
      (await world.store.readStream(stream, { direction: 'backwards', limit: 1 }))[0]?.revision ??
      0;
    const before = await revision();
    const appends = process.store.appends;
    for (const run of runs) {
      await soon(() => expect(process.running()).to.deep.equal([run]));
      process.finish(run);
    }
    await soon(async () => expect(await holders()).to.deep.equal([]));
    expect((await revision()) - before).to.equal(runs.length);
    // For each run its end and the key, and for all but the first the start.
    expect(process.store.appends - appends).to.equal(3 * runs.length - 1);
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
  });

  it('let an urgent run go first, however many wait', async () => {
    const process = await world.process('w1');
    const runs = Array.from({ length: 30 }, (_, index) => `r${String(index).padStart(2, '0')}`);
    for (const run of runs) await world.request('a', run);
    await soon(() => expect(process.running()).to.deep.equal(['r00']));
    await soon(async () => expect(await waiters()).to.have.lengthOf(MAX_WAITERS));
    await world.request('a', 'urgent', { priority: 1 });
    await soon(async () => expect((await waiters())[0]).to.equal('urgent'));
    process.finish('r00');
    await soon(() => expect(process.running()).to.deep.equal(['urgent']));
  });

  it('do not stop at a granted run that cannot start', async () => {
    await world.task('plain');
    const full = await world.process('w1', { slots: 2 });
    await world.request('a', 'r1');
    await soon(() => expect(full.running()).to.deep.equal(['r1']));
    await world.request('a', 'r2');
    await soon(async () => expect(await waiters()).to.deep.equal(['r2']));
    for (const run of ['p1', 'p2', 'p3']) await world.request('plain', run, { priority: 1 });
    await soon(() => expect(full.running()).to.have.members(['r1', 'p1']));
    // The key's keeper expects a free slot in the worker, but there is none.
    full.hasRoom = () => true;
    full.finish('r1');
    await soon(async () => expect(await holders()).to.deep.equal(['r2']));
    await soon(() => expect(full.running()).to.have.members(['p1', 'p2']));
    full.hasRoom = () => false;
    world.clock.shift(GRANT_LIFETIME + 1);
    await full.keeper.recheck(false);
    await soon(async () => expect(await holders()).to.deep.equal([]));
    full.finish('p1');
    full.finish('p2');
    await soon(() => expect(full.running()).to.include('p3'));
    full.finish('p3');
    await soon(() => expect(full.running()).to.deep.equal(['r2']));
    full.finish('r2');
    await world.reaches('r2', 'succeeded');
    const keyed = (await world.log()).filter(({ stream }) => !stream.startsWith('run-p'));
    expect(faultsOfKeys(keyed, 'concurrency', 1)).to.deep.equal([]);
  });

  it('get the key back from a granted run when the process stops first', async () => {
    const stopping = await world.process('w1');
    await world.request('a', 'r1');
    await soon(() => expect(stopping.running()).to.deep.equal(['r1']));
    await world.request('a', 'r2');
    await soon(async () => expect(await waiters()).to.deep.equal(['r2']));
    // The slot is handed on just before the worker stops.
    stopping.queue.notifyReady = () => {};
    const peek = stopping.queue.peek.bind(stopping.queue);
    stopping.queue.peek = (now) => {
      const run = peek(now);
      return run?.id === 'r2' ? null : run;
    };
    stopping.finish('r1');
    await soon(async () => expect(await holders()).to.deep.equal(['r2']));
    await stopping.worker.drain(0);
    await stopping.keeper.settled();
    await soon(async () => expect(await holders()).to.deep.equal([]));
    const other = await world.process('w2');
    await soon(() => expect(other.running()).to.deep.equal(['r2']));
    other.finish('r2');
    await world.reaches('r2', 'succeeded');
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
  });

  it('are all that is kept of a key: older events are truncated', async () => {
    const process = await world.process('w1');
    await soon(() => expect(process.membership.alive).to.equal(true));
    const base = { task_id: 'a', trigger: 'manual', priority: 5, since: 0, limit: 1 } as const;
    for (let use = 0; use <= TRUNCATE_EVERY; use += 1) {
      const now = world.clock.now();
      await changeKey(world.store, printer, world.context('use'), (state) => {
        const before = releaseAll(state, [`u${String(use - 1)}`]).state;
        const claim = { ...base, run_id: `u${String(use)}`, attempt: 1 };
        return { events: holdKey(before, claim, now).events, answer: null };
      });
    }
    const stream = streams.key('concurrency', OWNER, 'printer');
    await soon(() =>
      expect(process.store.cuts).to.deep.equal([{ stream, before: TRUNCATE_EVERY }]),
    );
    expect(await holders()).to.deep.equal([`u${String(TRUNCATE_EVERY)}`]);
  });

  it('skip a run whose task is paused, which keeps waiting', async () => {
    await world.task('b', { concurrency_key: 'printer' });
    const process = await world.process('w1');
    await world.request('b', 'r1');
    await soon(() => expect(process.running()).to.deep.equal(['r1']));
    await world.request('a', 'late', { trigger: 'backfill' });
    await soon(async () => expect(await waiters()).to.deep.equal(['late']));
    await world.request('b', 'r3', { priority: 9 });
    await soon(async () => expect(await waiters()).to.deep.equal(['late', 'r3']));
    const context = world.context('pause');
    await pauseTaskCommand({ store: world.store, taskId: 'a', context, mayChange: () => {} });
    process.finish('r1');
    await soon(() => expect(process.running()).to.deep.equal(['r3']));
    process.finish('r3');
    await soon(async () => expect([...(await holders()), ...(await waiters())]).to.deep.equal([]));
    expect(await world.run('late')).to.include({ state: 'queued' });
  });
});
