import { expect } from 'chai';
import { changeKey, concurrencyOf, readKey } from '../../../domain/keys/key-stream.ts';
import { holdKey, type KeyName } from '../../../domain/keys/key.ts';
import { cancelRunCommand, updateTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { KeyWorld, LEASE, OWNER, SHORT_LEASE, failed, faultsOfKeys, soon } from './key-harness.ts';

const printer: KeyName = { kind: 'concurrency', owner: OWNER, key: 'printer' };

describe('runs that share a concurrency key', () => {
  let world: KeyWorld;
  beforeEach(async () => {
    world = await KeyWorld.open();
  });
  afterEach(() => world.close());

  const task = (id: string, changes: Parameters<KeyWorld['task']>[1] = {}): Promise<void> =>
    world.task(id, { concurrency_key: 'printer', ...changes });

  const holders = async (): Promise<readonly string[]> =>
    ((await readKey(world.store, printer))?.holders ?? []).map(({ run_id }) => run_id);
  const waiters = async (): Promise<readonly string[]> =>
    ((await readKey(world.store, printer))?.waiters ?? []).map(({ run_id }) => run_id);

  const isFree = (): Promise<void> =>
    soon(
      async () => expect([...(await holders()), ...(await waiters())]).to.deep.equal([]),
      'the key to be free',
    );

  it('never run two at a time in two racing processes, and all run', async () => {
    await task('a');
    await task('b');
    const processes = [
      await world.process('w1', { hold: false }),
      await world.process('w2', { hold: false }),
    ];
    const runs = Array.from({ length: 24 }, (_, index) => `r${String(index)}`);
    await Promise.all(runs.map((run, index) => world.request(index % 2 ? 'a' : 'b', run)));
    for (const run of runs) await world.reaches(run, 'succeeded');
    await isFree();
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
    expect(processes.flatMap(({ executed }) => executed).sort()).to.deep.equal([...runs].sort());
  });

  it('run as many at a time as the limit allows', async () => {
    await task('a', { concurrency_limit: 2 });
    const process = await world.process('w1');
    for (const run of ['r1', 'r2', 'r3']) await world.request('a', run);
    await soon(async () => expect(await waiters()).to.have.lengthOf(1));
    await soon(() => expect(process.running()).to.have.lengthOf(2));
    expect(await holders()).to.have.lengthOf(2);
    const shown = await concurrencyOf(world.store, OWNER, 'printer');
    expect(shown).to.include({ key: 'printer', limit: 2 });
    expect(shown.waiters[0]).to.include({ task_id: 'a', priority: 5 });
  });

  it('wait by priority, then by age', async () => {
    await task('a');
    const process = await world.process('w1');
    const at = (second: number): string => `2026-01-01T00:00:0${String(second)}.000Z`;
    const request = (run: string, second: number, priority: number): Promise<unknown> =>
      world.request('a', run, { trigger: 'schedule', scheduledFor: at(second), priority });
    await request('first', 0, 5);
    await soon(() => expect(process.running()).to.deep.equal(['first']));
    await request('late', 3, 5);
    await request('early', 1, 5);
    await request('least', 0, 9);
    await request('urgent', 4, 1);
    await soon(async () => expect(await waiters()).to.have.lengthOf(4));
    const order: string[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      await soon(() => expect(process.running()).to.have.lengthOf(1));
      const [run = ''] = process.running();
      order.push(run);
      process.finish(run);
    }
    expect(order).to.deep.equal(['first', 'urgent', 'early', 'late', 'least']);
    await isFree();
  });

  it('continue with the key of a crashed worker, and then release it', async () => {
    await task('a');
    const first = await world.process('w1', { lease: SHORT_LEASE });
    await world.request('a', 'r1');
    await soon(() => expect(first.running()).to.deep.equal(['r1']));
    await world.request('a', 'r2');
    const second = await world.process('w2');
    await first.kill();
    await soon(() => expect(second.running()).to.deep.equal(['r1']));
    expect(await holders()).to.deep.equal(['r1']);
    second.finish('r1');
    await soon(() => expect(second.running()).to.deep.equal(['r2']));
    second.finish('r2');
    await isFree();
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
  });

  it('release the key in back-off and take it again', async () => {
    await task('a', { backoff_strategy: 'fixed', retry_delay_seconds: 3600 });
    const process = await world.process('w1');
    await world.request('a', 'r1');
    await world.request('a', 'r2');
    await soon(() => expect(process.running()).to.deep.equal(['r1']));
    process.finish('r1', failed);
    await soon(() => expect(process.running()).to.deep.equal(['r2']));
    await world.reaches('r1', 'retrying');
    expect(await holders()).to.deep.equal(['r2']);
    process.finish('r2');
    await isFree();
  });

  it('meet their deadline while they wait for the key after a back-off, and stop waiting', async () => {
    const backoff = { backoff_strategy: 'fixed', retry_delay_seconds: 0 } as const;
    await task('a', { ...backoff, timeout_seconds: 20 });
    await task('b');
    const process = await world.process('w1');
    await world.request('a', 'r1');
    await soon(() => expect(process.running()).to.deep.equal(['r1']));
    await world.request('b', 'r2');
    await soon(async () => expect(await waiters()).to.deep.equal(['r2']));
    world.clock.shift(13_000);
    process.finish('r1', failed);
    await soon(() => expect(process.running()).to.deep.equal(['r2']));
    await soon(async () => expect(await waiters()).to.deep.equal(['r1']));
    await world.reaches('r1', 'failed');
    await soon(async () => expect(await waiters()).to.deep.equal([]));
    expect(process.running()).to.deep.equal(['r2']);
    const events = await world.store.readStream('run-r1');
    const types = ['RunRequested', 'RunStarted', 'RunAttemptFailed', 'RunFailed'];
    expect(events.map(({ type }) => type)).to.deep.equal(types);
    expect(events.at(-1)?.data).to.include({ error: 'the run timed out after 20 s' });
    process.finish('r2');
    await isFree();
  });

  it('keep the key for the next attempt, however late the end of the last one is reported', async () => {
    await task('a', { backoff_strategy: 'fixed', retry_delay_seconds: 0 });
    const process = await world.process('w1');
    for (const run of ['r1', 'r2', 'r3']) await world.request('a', run);
    const attempts = new Map<string, number>();
    for (let turn = 0; turn < 9; turn += 1) {
      await soon(() => expect(process.running()).to.have.lengthOf(1));
      const [run = ''] = process.running();
      const attempt = (attempts.get(run) ?? 0) + 1;
      attempts.set(run, attempt);
      process.finish(run, ...(attempt < 3 ? [failed] : []));
    }
    for (const run of ['r1', 'r2', 'r3']) await world.reaches(run, 'succeeded');
    await isFree();
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
  });

  it('stop waiting when they are canceled', async () => {
    await task('a');
    const process = await world.process('w1');
    await world.request('a', 'r1');
    await soon(() => expect(process.running()).to.deep.equal(['r1']));
    await world.request('a', 'r2');
    await soon(async () => expect(await waiters()).to.deep.equal(['r2']));
    await cancelRunCommand(world.store, 'r2', world.context('cancel'));
    await soon(async () => expect(await waiters()).to.deep.equal([]));
    process.finish('r1');
    await isFree();
  });

  it('stop waiting at once when they are canceled after a change of their task', async () => {
    await task('a');
    await task('b');
    const process = await world.process('w1');
    // The process then knows the task's current state, but none of its revisions.
    await process.tasks.latest('a');
    // The run itself must leave the key, so the recheck every few seconds does nothing.
    process.keeper.recheck = async () => {};
    await world.request('a', 'r1');
    await soon(() => expect(process.running()).to.deep.equal(['r1']));
    await world.request('a', 'r2');
    await soon(async () => expect(await waiters()).to.deep.equal(['r2']));
    await world.request('b', 'r3');
    const context = world.context('change');
    const command = { store: world.store, taskId: 'a', context, mayChange: () => {} };
    await updateTaskCommand({ ...command, changes: { title: 'changed' } });
    await soon(() => expect(process.tasks.peek('a', 0)).to.equal(undefined), 'the change');
    await cancelRunCommand(world.store, 'r2', world.context('cancel'));
    await soon(async () => expect(await waiters()).to.deep.equal(['r3']));
    const left = (await world.log()).filter(
      ({ type, data }) => type === 'KeyReleased' && (data as { run_id: string }).run_id === 'r2',
    );
    expect(left.map(({ metadata }) => metadata.$correlationId)).to.deep.equal(['r2']);
    process.finish('r1');
    await soon(() => expect(process.running()).to.deep.equal(['r3']));
    process.finish('r3');
    await isFree();
  });

  it('lose a slot that they did not use within a lease, and get it again', async () => {
    await task('a');
    // Queued, but no worker takes it: its slot is left from a crashed process.
    const later = '2999-01-01T00:00:00.000Z';
    await world.request('a', 'r1', { trigger: 'schedule', scheduledFor: later });
    const now = world.clock.now();
    const claim = {
      run_id: 'r1',
      task_id: 'a',
      trigger: 'schedule',
      priority: 5,
      limit: 1,
    } as const;
    await changeKey(world.store, printer, world.context('hold'), (state) => ({
      events: holdKey(state, { ...claim, since: now, attempt: 1 }, now).events,
      answer: null,
    }));
    const process = await world.process('w1');
    await world.request('a', 'r2');
    await soon(async () => expect(await waiters()).to.deep.equal(['r2']));
    await process.keeper.recheck(true);
    expect(await holders()).to.deep.equal(['r1']);
    world.clock.shift(LEASE + 1);
    await process.keeper.recheck(true);
    await soon(() => expect(process.running()).to.deep.equal(['r2']));
    const events = await world.store.readStream('run-r1');
    expect(events.map(({ type }) => type)).to.deep.equal(['RunRequested', 'RunInterrupted']);
    expect(await world.run('r1')).to.include({ state: 'queued', interruptions: 0, attempt: 0 });
    process.finish('r2');
    await isFree();
  });

  it('stay in order when more runs wait than are recorded', async function () {
    this.timeout(180_000);
    await task('a');
    const process = await world.process('w1', { slots: 4, hold: false });
    const runs = Array.from({ length: 130 }, (_, index) => `r${String(index).padStart(3, '0')}`);
    const start = Date.parse('2026-01-01T00:00:00.000Z');
    for (const [index, run] of runs.entries()) {
      const scheduledFor = new Date(start + index * 1000).toISOString();
      await world.request('a', run, { trigger: 'schedule', scheduledFor });
    }
    for (const run of runs) await world.reaches(run, 'succeeded');
    await isFree();
    expect(process.executed).to.have.lengthOf(runs.length);
    const behind = process.executed.slice(4);
    expect(behind).to.deep.equal([...behind].sort());
    expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
  });

  it('do not affect runs without a key: two appends, and no key event', async () => {
    await world.task('plain');
    const process = await world.process('w1', { hold: false });
    await world.request('plain', 'r1');
    await world.reaches('r1', 'succeeded');
    expect(process.store.appends).to.equal(2);
    const log = await world.log();
    expect(log.filter(({ stream }) => stream.startsWith('key-'))).to.deep.equal([]);
  });
});
