import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { Signal } from '../../support/signals.ts';
import { WorkerWorld } from './worker-world.ts';

/** Takes the run whose turn it is. */
function nextOf(queue: RunQueue, now: number): QueuedRun | null {
  const run = queue.peek(now);
  queue.ready.pop();
  return run;
}

describe('a queue without a view', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  it('queues the runs that are unfinished at the end of the log', async () => {
    await world.task('t', ['a']);
    const one = await world.start('one');
    for (let n = 0; n < 3; n += 1) await world.request('t');
    await world.world.idle();
    await one.worker.drain(0);
    const waiting = await world.request('t');
    const { store, readModel, clock } = world.world;
    const queue = new RunQueue(store, readModel, clock, silent);
    const level = new Signal('the queue to be up to date');
    const stop = new AbortController();
    const followed = queue.follow(stop.signal, () => level.send());
    expect(queue.isCurrent).to.equal(false);
    await level.wait();
    expect(queue).to.include({ size: 1, waiting: 1, isCurrent: true });
    expect(nextOf(queue, clock.now())?.id).to.equal(waiting);
    expect(nextOf(queue, clock.now())).to.equal(null);
    const asked = await world.request('t');
    expect(queue.get(waiting)).to.include({ isNew: false });
    expect(queue.get(asked)).to.include({ isNew: true });
    stop.abort();
    await followed;
  });

  it('returns runs of one millisecond in the order of their requests', async () => {
    await world.task('t', ['a']);
    const { store, readModel, clock } = world.world;
    const queue = new RunQueue(store, readModel, clock, silent);
    const level = new Signal('the queue to be up to date');
    const stop = new AbortController();
    const asked: string[] = [];
    for (let n = 0; n < 20; n += 1) asked.push(await world.request('t'));
    const followed = queue.follow(stop.signal, () => level.send());
    await level.wait();
    const given = asked.map(() => nextOf(queue, clock.now())?.id);
    expect(given).to.deep.equal(asked);
    stop.abort();
    await followed;
  });
});
