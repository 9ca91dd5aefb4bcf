import { expect } from 'chai';
import { PerformanceObserver, constants } from 'node:perf_hooks';
import {
  collectGarbageBefore,
  youngCollector,
} from '../../../../app/roles/burst/collect-garbage.ts';
import { Signal } from '../../../support/signals.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

describe('young objects before many tasks are due', () => {
  const clock = new VirtualClock();
  /**
   * Reports tasks that are due after these milliseconds.
   * @returns the milliseconds until each collection
   */
  const collectedFor = async (due: readonly (number | null)[]): Promise<readonly number[]> => {
    const now = clock.now();
    const collected: number[] = [];
    const tell = collectGarbageBefore(clock, () => () => collected.push(clock.now() - now));
    tell(due.map((after) => ({ dueAt: after === null ? null : now + after })));
    await clock.advance(10_000);
    return collected;
  };
  const times = (count: number, after: (index: number) => number): number[] =>
    Array.from({ length: count }, (_, index) => after(index));

  it('are collected once, shortly before', async () => {
    expect(await collectedFor(times(1000, () => 2000))).to.deep.equal([1750]);
  });

  it('are collected before the burst, not before a few earlier tasks', async () => {
    const some = [null, ...times(20, (index) => index * 10)];
    const many = times(100, (index) => 3000 - index);
    expect(await collectedFor([...many, ...some])).to.deep.equal([2901 - 250]);
  });

  it('are collected at once if that time has already come', async () => {
    expect(await collectedFor(times(100, () => 100))).to.deep.equal([0]);
  });

  it('are not collected when few tasks are due, or many one after another', async () => {
    expect(await collectedFor(times(99, () => 2000))).to.deep.equal([]);
    expect(await collectedFor(times(300, (index) => index * 12))).to.deep.equal([]);
  });

  it('are collected by a function of V8 that no other context sees', async () => {
    const seen = new Signal<unknown>('a collection');
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if ('detail' in entry) seen.send(entry.detail);
    });
    observer.observe({ entryTypes: ['gc'] });
    try {
      const collect = youngCollector();
      collect();
      collect();
      const minor = constants.NODE_PERFORMANCE_GC_MINOR;
      await seen.wait((detail) => (detail as { readonly kind: number }).kind === minor);
      expect('gc' in globalThis).to.equal(false);
    } finally {
      observer.disconnect();
    }
  });
});
