import { expect } from 'chai';
import { MessageChannel } from 'node:worker_threads';
import { leavesNothingOpen } from './leaks.ts';
import { deferred, eventually, found, Signal, WaitTimeoutError } from './signals.ts';

async function failureOf(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    () => new Error('the promise resolved'),
    (error: unknown) => error,
  );
  expect(outcome).to.be.instanceOf(Error);
  return outcome as Error;
}

/** Lets something arrive, and then blocks the process beyond limits of 5 ms, as a busy machine does. */
function arriveInStall(arrived: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port2.once('message', () => {
    port2.close();
    arrived();
  });
  port1.postMessage('arrived');
  const begun = performance.now();
  while (performance.now() - begun < 20);
}

describe('a signal', () => {
  leavesNothingOpen();

  it('returns a value that was sent before the wait', async () => {
    const signal = new Signal<number>();
    signal.send(1);
    signal.send(2);
    expect(await signal.wait((value) => value > 1)).to.equal(2);
  });

  it('returns a value that is sent during the wait', async () => {
    const signal = new Signal<number>();
    const waiting = signal.wait((value) => value === 3);
    signal.send(1);
    signal.send(3);
    expect(await waiting).to.equal(3);
  });

  it('waits for a number of values', async () => {
    const signal = new Signal<string>();
    const waiting = signal.count(2);
    signal.send('a');
    signal.send('b');
    signal.send('c');
    expect(await waiting).to.deep.equal(['a', 'b']);
  });

  it('names the missing value when it times out', async () => {
    const signal = new Signal<number>('the runs');
    signal.send(1);
    const failure = await failureOf(signal.wait((value) => value > 1, { limitMs: 5 }));
    expect(failure).to.be.instanceOf(WaitTimeoutError);
    expect(failure.message).to.match(/5 ms in vain for a matching value of the runs; 1 values/);
  });

  it('takes a value that arrived while the process stood still beyond the limit', async () => {
    const signal = new Signal();
    const waiting = signal.wait(() => true, { limitMs: 5 });
    arriveInStall(signal.send);
    await waiting;
  });
});

describe('waiting for a condition', () => {
  leavesNothingOpen();

  it('continues until the check no longer throws', async () => {
    let turns = 0;
    await eventually(() => {
      turns += 1;
      expect(turns).to.be.greaterThan(3);
    });
    expect(turns).to.equal(4);
  });

  it('sees what arrived while the process stood still beyond the limit', async () => {
    let hasArrived = false;
    const waiting = eventually(() => hasArrived, { limitMs: 5 });
    arriveInStall(() => (hasArrived = true));
    await waiting;
  });

  it('returns the result of a lookup', async () => {
    const values: string[] = [];
    const waiting = found(() => values[0]);
    values.push('here');
    expect(await waiting).to.equal('here');
  });

  it('names the condition and the last failure after the timeout', async () => {
    const failure = await failureOf(
      eventually(() => expect.fail('two runs are left'), {
        limitMs: 5,
        what: 'the queue to empty',
      }),
    );
    expect(failure.message).to.equal(
      'Waited 5 ms in vain for the queue to empty: two runs are left',
    );
  });

  it('continues once a deferred is resolved', async () => {
    const gate = deferred<number>();
    gate.resolve(4);
    expect(await gate.promise).to.equal(4);
  });
});
