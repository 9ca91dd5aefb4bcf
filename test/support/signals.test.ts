import { expect } from 'chai';
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
