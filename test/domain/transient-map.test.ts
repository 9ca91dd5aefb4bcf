import { expect } from 'chai';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { TransientMap } from '../../domain/transient-map.ts';
import { randomBy } from '../support/random.ts';

describe('a map for short-lived entries', () => {
  it('holds what a Map holds, in its order, whatever is set and deleted', () => {
    const random = randomBy(1);
    const map = new TransientMap<number, number>();
    const expected = new Map<number, number>();
    for (let step = 0; step < 50_000; step += 1) {
      const key = Math.floor(random() * 1_000);
      if (random() < 0.4) {
        map.set(key, step);
        expected.set(key, step);
      } else {
        expect(map.delete(key)).to.equal(expected.delete(key));
      }
      expect(map.size).to.equal(expected.size);
      expect(map.get(key)).to.equal(expected.get(key));
      expect(map.has(key)).to.equal(expected.has(key));
      if (step % 500 === 0) expect([...map.values()]).to.deep.equal([...expected.values()]);
    }
    map.clear();
    expect([map.size, map.get(1), [...map.values()]]).to.deep.equal([0, undefined, []]);
  });

  it('frees what was in it without a full collection', () => {
    const collectYoung = youngCollection();
    const map = new TransientMap<number, readonly number[]>();
    // Some hundred are there at a time, each of about 1,000 bytes.
    const pass = (from: number, to: number): void => {
      for (let key = from; key < to; key += 1) {
        map.set(
          key,
          Array.from({ length: 120 }, (_, index) => key + index),
        );
        map.delete(key - 300);
      }
    };
    pass(0, 1_000);
    const before = heapAfter(collectYoung);
    for (let from = 1_000; from < 20_000; from += 1_000) {
      pass(from, from + 1_000);
      collectYoung();
    }
    expect((heapAfter(collectYoung) - before) / 2 ** 20).to.be.below(3);
  });
});

/** What collects the young objects now. */
function youngCollection(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;
  return () => collect({ type: 'minor' });
}

/** Bytes that are in use. What has lived through two collections is no longer young. */
function heapAfter(collectYoung: () => void): number {
  collectYoung();
  collectYoung();
  return process.memoryUsage().heapUsed;
}
