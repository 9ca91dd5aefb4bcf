import { expect } from 'chai';
import { decorate } from '../../domain/decorate.ts';

/** A port with a method that not every adapter has. */
interface Counter {
  add(by: number): number;
  sum(): number;
  hint?(): string;
}

class Base {
  hint(): string {
    return 'of the base';
  }
}

class Adapter extends Base implements Counter {
  #sum = 0;
  asked = 0;

  add(by: number): number {
    this.#sum += by;
    return this.sum();
  }

  sum(): number {
    this.asked += 1;
    return this.#sum;
  }
}

describe('a decorated port', () => {
  it('forwards methods that are not replaced, including inherited and optional ones', () => {
    const adapter = new Adapter();
    const counter = decorate<Counter>(adapter, { add: (by) => adapter.add(by * 10) });
    expect(counter.add(2)).to.equal(20);
    expect(counter.sum()).to.equal(20);
    expect(counter.hint?.()).to.equal('of the base');
    expect(adapter.asked).to.equal(2);
  });

  it('works on an object without a class, and can be decorated again', () => {
    const plain: Counter = { add: (by) => by, sum: () => 7 };
    const once = decorate(plain, { sum: () => plain.sum() + 1 });
    const twice = decorate(once, { add: (by) => -by });
    expect([twice.add(3), twice.sum(), twice.hint]).to.deep.equal([-3, 8, undefined]);
  });

  it('leaves the decorated object unchanged', () => {
    const adapter = new Adapter();
    decorate<Counter>(adapter, { sum: () => -1 });
    expect(adapter.sum()).to.equal(0);
  });

  it('forwards a method whose replacement is undefined', () => {
    const plain: Counter = { add: (by) => by, sum: () => 7, hint: () => 'there' };
    const none: Partial<Counter> = {};
    const counter = decorate(plain, { ...none, ...({ hint: undefined } as object) });
    expect(counter.hint?.()).to.equal('there');
  });
});
