import { expect } from 'chai';
import { EventStoreError } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { backOff, noteExecuted } from '../../../scheduler/runs/run-backoff.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { collectingLines } from '../../support/reporting-to.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { WorkerWorld } from './worker-world.ts';

describe('a run that cannot be executed', () => {
  const clock = new VirtualClock();
  let reported: number;
  let counted: number;
  const telemetry = {
    ...silent,
    failures: { ...silent.failures, failed: () => void (reported += 1) },
    count: () => void (counted += 1),
  };
  const queued = (id: string): QueuedRun => ({ id }) as QueuedRun;

  beforeEach(() => {
    reported = counted = 0;
  });

  /** Retries a run this many times. Returns the pauses in seconds. */
  const pauses = async (run: QueuedRun, error: Error, times: number): Promise<number[]> => {
    const found: number[] = [];
    for (let n = 0; n < times; n += 1) {
      const pause = backOff(run, error, { clock, telemetry }) - clock.now();
      found.push(pause / 1000);
      await clock.advance(pause);
    }
    return found;
  };

  it('is retried after doubling pauses of up to a minute, and reported and counted each time', async () => {
    const found = await pauses(queued('r'), new Error('no such task'), 9);
    expect(found).to.deep.equal([1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect([reported, counted]).to.deep.equal([9, 9]);
  });

  it('is retried each second while the log is unavailable, and reported each time', async () => {
    const away = new EventStoreError('UNAVAILABLE', 'away');
    const found = await pauses(queued('r'), away, 100);
    expect(new Set(found)).to.deep.equal(new Set([1]));
    expect([reported, counted]).to.deep.equal([100, 100]);
  });

  it('is reported until it is executed; the execution of another run changes nothing', () => {
    const lines: string[] = [];
    const parts = { clock, telemetry: collectingLines(lines) };
    const run = queued('r');
    backOff(run, new Error('no'), parts);
    noteExecuted(queued('other'), parts);
    const failed = 'could not execute a run; retrying';
    expect(lines).to.deep.equal([failed]);
    noteExecuted(run, parts);
    noteExecuted(run, parts);
    expect(lines).to.deep.equal([failed, `succeeded again after: ${failed}`]);
  });

  it('restarts the pauses after a long time without an error, and delays no other run', async () => {
    const run = queued('r');
    await pauses(run, new Error('no'), 5);
    expect(await pauses(queued('other'), new Error('no'), 1)).to.deep.equal([1]);
    await clock.advance(6 * 60_000);
    expect(await pauses(run, new Error('no'), 1)).to.deep.equal([1]);
  });
});

describe('a run that lost a race and cannot be reloaded', () => {
  let world: WorkerWorld;
  beforeEach(async () => {
    world = await WorkerWorld.open();
  });
  afterEach(() => world.close());

  it('is retried, and reported until it is executed', async () => {
    await world.task('t', ['a']);
    const one = await world.start('one');
    let [races, reads] = [0, 0];
    one.store.onAppend = (stream, events) => {
      if (events[0]?.type !== 'RunStarted' || races > 0) return;
      races += 1;
      throw new EventStoreError('CONFLICT', 'another writer won the race', { stream });
    };
    one.store.onRead = (stream) => {
      if (races === 0 || !stream.startsWith('run-')) return;
      reads += 1;
      // The first read looks for events after which the run would still belong to this worker.
      if (reads === 2) throw new EventStoreError('CORRUPT_EVENT', 'broken');
    };
    const runId = await world.request('t');
    const failed = 'could not execute a run; retrying';
    const reported = (): string[] => one.lines.filter((line) => line.includes(failed));
    expect(reported()).to.deep.equal([failed]);
    await world.clock.advance(2_000);
    expect(await world.run(runId)).to.include({ state: 'succeeded' });
    expect(reported()).to.deep.equal([failed, `succeeded again after: ${failed}`]);
  });
});
