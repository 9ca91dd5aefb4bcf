import { expect } from 'chai';
import { availableParallelism } from 'node:os';
import {
  threadsFor,
  usableProcessors,
} from '../../../../app/projecting/parallel-fill/thread-limits.ts';

const GIB = 2 ** 30;

describe('the number of threads that fill a view', () => {
  it('is one per processor, at most four and at least one', () => {
    expect(threadsFor(1, undefined)).to.equal(1);
    expect(threadsFor(2, 0)).to.equal(2);
    expect(threadsFor(64, undefined)).to.equal(4);
    expect(threadsFor(0.5, undefined)).to.equal(1);
  });

  it('is limited by the memory that the process may use', () => {
    expect(threadsFor(4, GIB / 2)).to.equal(1);
    expect(threadsFor(4, 2.5 * GIB)).to.equal(2);
    expect(threadsFor(4, 2 ** 64)).to.equal(4);
  });

  it("is limited by the container's quota", () => {
    const all = availableParallelism();
    expect(usableProcessors('50000 100000\n')).to.equal(0.5);
    expect(usableProcessors('max 100000\n')).to.equal(all);
    expect(usableProcessors('99900000 100000\n')).to.equal(all);
    expect(usableProcessors('')).to.equal(all);
  });
});
