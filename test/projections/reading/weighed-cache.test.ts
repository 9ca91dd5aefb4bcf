import { expect } from 'chai';
import { WeighedCache } from '../../../projections/reading/weighed-cache.ts';

describe('a weighed cache', () => {
  it('drops the least recently used when there are too many', () => {
    const cache: WeighedCache<number> = new WeighedCache({ entries: 10, weight: 1000 });
    for (let n = 0; n < 10; n += 1) cache.set(`k${n}`, n);
    expect(cache.get('k0')).to.equal(0);
    cache.set('k10', 10);
    expect(cache.peek('k1')).to.equal(undefined);
    expect(cache.peek('k0')).to.equal(0);
    expect(cache.peek('k10')).to.equal(10);
    expect(cache.size).to.be.at.most(10);
  });

  it('drops as much as needed when few weigh too much', () => {
    const cache: WeighedCache<string> = new WeighedCache({ entries: 1000, weight: 100 });
    cache.set('a', 'x'.repeat(38));
    cache.set('b', 'x'.repeat(38));
    cache.set('c', 'x'.repeat(38));
    expect([cache.peek('a'), cache.peek('b')?.length, cache.peek('c')?.length]).to.deep.equal([
      undefined,
      38,
      38,
    ]);
  });

  it('weighs a replaced value again', () => {
    const cache: WeighedCache<string> = new WeighedCache({ entries: 1000, weight: 100 });
    cache.set('a', 'x'.repeat(90));
    cache.set('a', 'x');
    cache.set('b', 'x'.repeat(80));
    expect(cache.size).to.equal(2);
    cache.delete('b');
    cache.set('c', 'x'.repeat(90));
    expect(cache.size).to.equal(2);
  });

  it('keeps the last value, however heavy', () => {
    const cache: WeighedCache<string> = new WeighedCache({ entries: 1000, weight: 100 });
    cache.set('a', 'x');
    cache.set('b', 'x'.repeat(1000));
    expect(cache.peek('b')?.length).to.equal(1000);
    expect(cache.size).to.equal(1);
  });
});
