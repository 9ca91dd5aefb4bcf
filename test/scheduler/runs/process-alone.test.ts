import { expect } from 'chai';
import type { Lease } from '../../../scheduler/coordination.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { cancelRunCommand } from '../../../domain/tasks/task-commands.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import { WorkerWorld } from './worker-world.ts';

describe('a process that runs alone', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  it('stops a run that another of its runs has canceled', async () => {
    await world.task('t', ['hold:a']);
    await world.start('one');
    const runId = await world.request('t');
    await cancelRunCommand(world.world.store, runId, { ...world.world.context(), source: 'one' });
    await world.world.idle();
    expect(await world.run(runId)).to.include({ state: 'canceled' });
  });

  it('frees the runs of a dead worker, even if one of them is unreadable', async () => {
    await world.task('t', ['hold:a']);
    const one = await world.start('one');
    const unreadable = await world.request('t');
    const other = await world.request('t');
    one.kill();
    const two = await world.start('two');
    const readStream = two.store.readStream.bind(two.store);
    two.store.readStream = (stream, options) =>
      stream === streams.run(unreadable)
        ? Promise.reject(new Error('does not fit its schema'))
        : readStream(stream, options);
    await world.clock.advance(60_000);
    expect(await world.run(other)).to.include({ state: 'running', lease_owner: 'two' });
    expect(await world.run(unreadable)).to.include({ lease_owner: 'one' });
  });

  it('reports leadership that was lost and regained while it slept', async () => {
    const { clock, coordination } = world.world;
    const [name, owner, lease] = ['work', 'one', 3000];
    const leadership = new Leadership({
      name,
      owner,
      lease,
      coordination,
      clock,
      telemetry: silent,
    });
    const stop = new AbortController();
    const ended = leadership.run(stop.signal);
    await clock.advance(1);
    const fences: number[] = [];
    leadership.onChange(() => fences.push(leadership.fence));
    const { fence } = leadership;
    coordination.acquire = () => Promise.resolve<Lease>({ fence: fence + 2, remaining: lease });
    await clock.advance(2000);
    stop.abort();
    await ended;
    expect(fences).to.deep.equal([fence + 2]);
  });
});
