import { expect } from 'chai';
import { withinTime } from '../../../api/params/time-limit.ts';

describe('the time limit of a check', () => {
  const late = (): Error => new Error('too slow');

  it('returns the result of the work, and its errors', () => {
    expect(withinTime(() => undefined, late)).to.equal(undefined);
    expect(withinTime(() => [1], late)).to.deep.equal([1]);
    const failing = (): never => {
      throw new Error('of the work');
    };
    expect(() => withinTime(failing, late)).to.throw('of the work');
  });

  it('stops work that takes the processor for longer', () => {
    let begun = 0;
    const endless = (): never => {
      begun += 1;
      for (;;);
    };
    expect(() => withinTime(endless, late)).to.throw('too slow');
    expect(begun).to.be.within(1, 3);
  });

  it('repeats work during which the machine stood still', () => {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    let begun = 0;
    const stalled = (): string => {
      begun += 1;
      if (begun === 1) Atomics.wait(cell, 0, 0, 30_000);
      return 'checked';
    };
    expect(withinTime(stalled, late)).to.equal('checked');
    expect(begun).to.equal(2);
  });
});
