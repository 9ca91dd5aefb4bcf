import { expect } from 'chai';
import { EventStoreError } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { backOff } from '../../../scheduler/runs/run-backoff.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('a run that cannot be executed', () => {
  const clock = new VirtualClock();
  let told: number;
  let counted: number;
  const telemetry = {
    ...silent,
    failures: { ...silent.failures, failed: () => void (told += 1) },
    count: () => void (counted += 1),
  };
  const queued = (id: string): QueuedRun => ({ id }) as QueuedRun;

  beforeEach(() => {
    told = counted = 0;
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
    expect([told, counted]).to.deep.equal([9, 9]);
  });

  it('is retried each second while the log is unavailable, and reported each time', async () => {
    const away = new EventStoreError('UNAVAILABLE', 'away');
    const found = await pauses(queued('r'), away, 100);
    expect(new Set(found)).to.deep.equal(new Set([1]));
    expect([told, counted]).to.deep.equal([100, 100]);
  });

  it('restarts the pauses after a long time without an error, and delays no other run', async () => {
    const run = queued('r');
    await pauses(run, new Error('no'), 5);
    expect(await pauses(queued('other'), new Error('no'), 1)).to.deep.equal([1]);
    await clock.advance(6 * 60_000);
    expect(await pauses(run, new Error('no'), 1)).to.deep.equal([1]);
  });
});
