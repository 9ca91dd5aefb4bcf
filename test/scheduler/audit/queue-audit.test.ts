import { once as eventOnce } from 'node:events';
import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { load } from '../../../domain/handle.ts';
import { requireRun, runFold } from '../../../domain/runs/run.ts';
import { silent } from '../../../observability/telemetry.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import type { Audit } from '../../../scheduler/audit/audit.ts';
import { parseReport, QUEUE_REPORT } from '../../../scheduler/audit/report.ts';
import { createQueueAudit } from '../../../scheduler/audit/scheduler-audit.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { Signal } from '../../support/signals.ts';
import { CountingTelemetry, passOf, plant, SleepersClock } from './audit-world.ts';
import { minute } from '../scheduler-world.ts';
import { WatchedStore } from '../watched-store.ts';
import { WorkerWorld, type WorkerProcess } from '../runs/worker-world.ts';

const once = { found: 1, mended: 1 };

describe("a worker's audit of its queue", () => {
  let world: WorkerWorld;
  let worker: WorkerProcess;
  let telemetry: CountingTelemetry;
  let clock: SleepersClock;
  let audit: Audit;

  beforeEach(async () => {
    world = await WorkerWorld.open();
    worker = await world.start('w');
    telemetry = new CountingTelemetry();
    clock = new SleepersClock(world.clock);
    const { readModel, coordination } = world.world;
    const { store, queue } = worker;
    audit = createQueueAudit({ store, readModel, coordination, queue, clock, telemetry });
    await world.task('t', ['a']);
  });

  afterEach(async () => {
    await world.close();
  });

  const pass = async (): Promise<void> => {
    await world.world.project([runsProjection]);
    await passOf(audit, world.world, clock);
  };

  /** A run that is requested while the worker is stopped. */
  const waiting = async (): Promise<QueuedRun> => {
    await worker.worker.drain(0);
    const run = worker.queue.get(await world.request('t'));
    if (run === undefined) throw new Error('the queue does not follow');
    return run;
  };

  /** Makes the queue count a run as ended. */
  const lose = async (run: QueuedRun): Promise<void> => {
    const { state } = await load(world.world.store, `run-${run.id}`, runFold);
    worker.queue.refresh(run, { ...requireRun(state), state: 'canceled', revision: 99 });
    expect(worker.queue.get(run.id)).to.equal(undefined);
  };

  it('finds nothing while runs start and end', async () => {
    for (let n = 0; n < 5; n += 1) {
      await world.request('t');
      await pass();
    }
    expect([...telemetry.counts]).to.deep.equal([]);
    expect(await world.world.coordination.recall(QUEUE_REPORT)).to.equal(null);
  });

  it('does not check a queue that has not caught up', async () => {
    await world.request('t');
    await world.world.idle();
    const { readModel, coordination } = world.world;
    const store = new WatchedStore(world.world.store);
    const subscribe = store.subscribe.bind(store);
    const begun = new Signal('the request to be taken in');
    const stop = new AbortController();
    store.subscribe = async function* (asked) {
      for await (const message of subscribe(asked)) {
        if (message.kind !== 'events') continue;
        yield { ...message, events: message.events.slice(0, 1) };
        begun.send();
        await eventOnce(stop.signal, 'abort');
        return;
      }
    };
    const behind = new RunQueue(store, readModel, world.clock, silent);
    const followed = behind.follow(stop.signal, () => {});
    await begun.wait();
    expect(behind.size).to.equal(1);
    audit = createQueueAudit({ store, readModel, coordination, queue: behind, clock, telemetry });
    const ran = audit.run(stop.signal);
    await world.clock.advance(5 * minute);
    stop.abort();
    await Promise.all([followed, ran]);
    expect([...telemetry.counts]).to.deep.equal([]);
  });

  it('restores a run that the queue has lost, and the run is executed', async () => {
    const run = await waiting();
    await lose(run);
    worker.worker.start();
    await world.clock.advance(minute);
    expect(await world.typesOf(run.id)).to.deep.equal(['Requested']);
    await pass();
    expect(telemetry.audited('run_missing')).to.deep.equal(once);
    await world.world.idle();
    expect(await world.typesOf(run.id)).to.deep.equal(['Requested', 'Started', 'Succeeded']);
    const report = parseReport(await world.world.coordination.recall(QUEUE_REPORT));
    expect(report?.findings.run_missing).to.deep.equal({ ...once, names: [run.id] });
  });

  it('drops an ended run, and updates a run that has moved on', async () => {
    const ended = await waiting();
    const { id } = await waiting();
    await world.cancel(ended.id);
    await world.world.project([runsProjection]);
    const kept = await world.world.readModel.get(runsProjection, ended.id);
    if (kept === null) throw new Error('the view does not follow');
    worker.queue.restore({ ...kept.document, state: 'queued', revision: 0 });
    const started = {
      worker: 'other',
      attempt: 1,
      leased_until: toIso(world.clock.now() + minute),
    };
    const before = worker.queue.get(id);
    if (before === undefined) throw new Error('the queue does not follow');
    await plant(world.world, `run-${id}`, [{ type: 'RunStarted', data: started }]);
    Object.assign(before, { state: 'queued', owner: null, attempt: 0, revision: 0 });
    await pass();
    expect(telemetry.audited('run_left')).to.deep.equal(once);
    expect(telemetry.audited('run_behind')).to.deep.equal(once);
    expect(worker.queue.get(ended.id)).to.equal(undefined);
    expect(worker.queue.get(id)).to.include({ state: 'running', owner: 'other', revision: 1 });
  });
});
