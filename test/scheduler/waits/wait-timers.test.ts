import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import type { Resumption, Wait } from '../../../domain/runs/run-waits.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { RunQueueListener } from '../../../scheduler/runs/queued-run.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import type { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import type { WaitResumer } from '../../../scheduler/waits/wait-resumer.ts';
import { WaitTimers } from '../../../scheduler/waits/wait-timers.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

const second = 1000;
const day = 86_400 * second;

describe('the timers of waits', () => {
  let clock: VirtualClock;
  let listener: RunQueueListener;
  let ended: (readonly [string, Resumption['by']['kind']])[];
  let failures: number;
  /** Whether a due wait is unmet. */
  let isUnmet: boolean;
  let timers: WaitTimers;
  const leadership = { leads: true, onChange: () => {} };
  const hold = { held: false, missed: null };

  beforeEach(() => {
    clock = new VirtualClock();
    ended = [];
    failures = 0;
    isUnmet = true;
    leadership.leads = true;
    hold.held = false;
    const queue = { subscribe: (given: RunQueueListener) => (listener = given) };
    const resume = async (run: QueuedRun, id: string, { by }: Resumption): Promise<boolean> => {
      if (failures > 0) {
        failures -= 1;
        throw new Error('the log is unavailable');
      }
      ended.push([id, by.kind]);
      run.waits = [];
      return true;
    };
    timers = new WaitTimers({
      // Only the parts of both that the timers use.
      queue: queue as unknown as RunQueue,
      resumer: { resume } as unknown as WaitResumer,
      clock,
      telemetry: silent,
      leadership,
      hold,
      isUnmet: () => Promise.resolve(isUnmet),
    });
  });

  afterEach(() => timers.stop());

  const waiting = (id: string, seconds: number, waits_for: Wait['waits_for']): QueuedRun => {
    const times = { since: toIso(clock.now()), until: toIso(clock.now() + seconds * second) };
    const wait = { step: 's', wait_id: id, attempt: 1, waits_for, ...times, resumed: null };
    const run = { id: `run-${id}`, ended: false, waits: [wait] } as unknown as QueuedRun;
    listener.onWaits?.(run);
    return run;
  };

  const timer = (id: string, seconds: number): QueuedRun =>
    waiting(id, seconds, { kind: 'timer', seconds });

  it('end a wait even if its run was read again after an interruption', async () => {
    const run = timer('a', 60);
    run.ended = true;
    listener.onWaits?.({ ...run, ended: false });
    await clock.advance(60 * second);
    expect(ended).to.deep.equal([['a', 'timer']]);
  });

  it('leave a due wait alone while its event may have arrived', async () => {
    isUnmet = false;
    timer('a', 60);
    await clock.advance(70 * second);
    expect(ended).to.deep.equal([]);
    isUnmet = true;
    await clock.advance(second);
    expect(ended).to.deep.equal([['a', 'timer']]);
  });

  it('end a wait of a year in time even if the clock is set back in the meantime', async () => {
    timer('a', 365 * 86_400);
    await clock.advance(364 * day);
    clock.setTo(clock.now() - 2 * 3600 * second);
    await clock.advance(day);
    expect(ended).to.deep.equal([]);
    await clock.advance(2 * 3600 * second);
    expect(ended).to.deep.equal([['a', 'timer']]);
  });

  it('end a wait of a year by the clock even if that is set forward in the meantime', async () => {
    timer('a', 365 * 86_400);
    await clock.advance(300 * day);
    clock.setTo(clock.now() + 64 * day);
    await clock.advance(day - second);
    expect(ended).to.deep.equal([]);
    await clock.advance(second);
    expect(ended).to.deep.equal([['a', 'timer']]);
  });

  it('need one timer for many waits, and end all that are due', async () => {
    for (let n = 0; n < 1000; n += 1) timer(String(n), 60);
    for (let n = 0; n < 1000; n += 1) timer(`late ${n}`, 120);
    expect(clock.pending).to.equal(1);
    await clock.advance(60 * second);
    expect(ended).to.have.lengthOf(1000);
    await clock.advance(60 * second);
    expect(ended).to.have.lengthOf(2000);
  });

  it('end any other wait at its limit', async () => {
    waiting('e', 5, { kind: 'event', topic: 'a.*' });
    await clock.advance(5 * second);
    expect(ended).to.deep.equal([['e', 'timeout']]);
  });

  it('ignore waits that have ended in another way', async () => {
    const run = timer('a', 5);
    run.waits = [];
    await clock.advance(5 * second);
    const other = timer('b', 5);
    other.ended = true;
    await clock.advance(5 * second);
    expect(ended).to.deep.equal([]);
  });

  it('repeat failed writes', async () => {
    failures = 3;
    timer('a', 5);
    await clock.advance(5 * second);
    expect(ended).to.deep.equal([]);
    await clock.advance(2 * second);
    expect(ended).to.deep.equal([['a', 'timer']]);
  });

  it('are left to the leader for two seconds', async () => {
    leadership.leads = false;
    timer('a', 5);
    await clock.advance(7 * second - 1);
    expect(ended).to.deep.equal([]);
    await clock.advance(1);
    expect(ended).to.deep.equal([['a', 'timer']]);
  });

  it('end no waits while the service is on hold, and all due ones afterwards', async () => {
    hold.held = true;
    timer('a', 5);
    await clock.advance(60 * second);
    expect(ended).to.deep.equal([]);
    hold.held = false;
    timers.holdChanged();
    await clock.advance(1);
    await settle();
    expect(ended).to.deep.equal([['a', 'timer']]);
  });
});
