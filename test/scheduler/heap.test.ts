import { expect } from 'chai';
import fc from 'fast-check';
import { Heap } from '../../scheduler/heap.ts';

describe('a heap', () => {
  const heapOf = (items: readonly number[]): Heap<number> => {
    const heap = new Heap<number>((a, b) => a < b);
    for (const item of items) heap.push(item);
    return heap;
  };

  const drain = (heap: Heap<number>): number[] => {
    const items: number[] = [];
    while (heap.size > 0) items.push(heap.pop() as number);
    return items;
  };

  it('returns its elements in order, whatever the sequence of pushes and pops', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.integer())), (acts) => {
        const heap = heapOf([]);
        let model: number[] = [];
        for (const act of acts) {
          if (act === null) {
            expect(heap.pop()).to.equal(model.shift());
          } else {
            heap.push(act);
            model = [...model, act].sort((a, b) => a - b);
          }
          expect(heap.peek()).to.equal(model[0]);
          expect(heap.size).to.equal(model.length);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('retains the elements that pass, in order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (items) => {
        const heap = heapOf(items);
        heap.retain((item) => item % 2 === 0);
        const even = items.filter((item) => item % 2 === 0).sort((a, b) => a - b);
        expect(drain(heap)).to.deep.equal(even);
      }),
      { numRuns: 100 },
    );
  });

  it('pops nothing when it is empty', () => {
    expect(heapOf([]).pop()).to.equal(undefined);
    expect(heapOf([]).peek()).to.equal(undefined);
  });
});
