import { expect } from 'chai';
import fc from 'fast-check';
import { SortedStrings } from '../../../projections/reading/sorted-strings.ts';

describe('sorted strings', () => {
  const texts = (...all: readonly string[]): SortedStrings => {
    const sorted = new SortedStrings();
    for (const text of all) sorted.add(text);
    return sorted;
  };

  it('are read page by page', () => {
    const sorted = texts('c', 'a', 'd', 'b');
    expect(sorted.page(null, 0, 2)).to.deep.equal(['a', 'b']);
    expect(sorted.page(null, 3, 2)).to.deep.equal(['d']);
    expect(sorted.page('b', 0, 9)).to.deep.equal(['c', 'd']);
    expect(sorted.page('b', 1, 9)).to.deep.equal(['d']);
  });

  it('continue after a string that was removed', () => {
    const sorted = texts('a', 'b', 'c');
    sorted.page(null, 0, 1);
    sorted.delete('b');
    expect(sorted.page('b', 0, 9)).to.deep.equal(['c']);
  });

  it('are a set, whatever is added, removed and read in between', () => {
    const steps = fc.array(
      fc.record({ kind: fc.constantFrom('add', 'delete', 'page'), text: fc.string() }),
    );
    const property = fc.property(steps, (all) => {
      const sorted = new SortedStrings();
      const wanted = new Set<string>();
      for (const { kind, text } of all) {
        if (kind === 'add') {
          sorted.add(text);
          wanted.add(text);
        } else if (kind === 'delete') {
          sorted.delete(text);
          wanted.delete(text);
        } else {
          const behind = [...wanted].sort().filter((each) => each > text);
          expect(sorted.page(text, 0, 1000)).to.deep.equal(behind);
        }
      }
      expect(sorted.size).to.equal(wanted.size);
      expect(sorted.page(null, 0, 1000)).to.deep.equal([...wanted].sort());
    });
    fc.assert(property);
  });
});
