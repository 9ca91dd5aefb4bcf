import { expect } from 'chai';
import { table } from '../../../app/cli/terminal/table.ts';

describe('a table', () => {
  it('aligns its columns, numbers to the right', () => {
    const columns = [{ title: 'name' }, { title: 'took', align: 'right' }] as const;
    expect(
      table(columns, [
        ['a', 5],
        ['longer', '1234 ms'],
      ]).split('\n'),
    ).to.deep.equal(['name       took', '──────  ───────', 'a             5', 'longer  1234 ms']);
  });

  it('leaves a missing cell empty and no spaces at the end of a line', () => {
    const columns = [{ title: 'a' }, { title: 'b' }];
    expect(
      table(columns, [['x'], [null, 'y']])
        .split('\n')
        .slice(2),
    ).to.deep.equal(['x', '   y']);
  });

  it('cuts what is too long, and says so by an ellipsis', () => {
    const columns = [{ title: 't', maxWidth: 4 }];
    expect(
      table(columns, [['12345'], ['1234']])
        .split('\n')
        .slice(2),
    ).to.deep.equal(['123…', '1234']);
  });

  it('keeps a cell of several lines on one', () => {
    expect(table([{ title: 't' }], [['one\n  two']]).split('\n')).to.have.lengthOf(3);
  });

  it('counts a character outside of the first plane once', () => {
    const [, rule] = table([{ title: 't' }], [['😀😀']]).split('\n');
    expect(rule).to.equal('──');
  });

  it('shows its titles when there is nothing below them', () => {
    expect(table([{ title: 'name' }], [])).to.equal('name\n────');
  });
});
