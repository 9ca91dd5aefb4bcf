import { expect } from 'chai';
import { table } from '../../../app/cli/terminal/table.ts';

describe('a table', () => {
  it('aligns its columns, numbers on the right', () => {
    const columns = [{ title: 'name' }, { title: 'took', align: 'right' }] as const;
    expect(
      table(columns, [
        ['a', 5],
        ['longer', '1234 ms'],
      ]).split('\n'),
    ).to.deep.equal(['name       took', '──────  ───────', 'a             5', 'longer  1234 ms']);
  });

  it('leaves missing cells empty and lines without trailing spaces', () => {
    const columns = [{ title: 'a' }, { title: 'b' }];
    expect(
      table(columns, [['x'], [null, 'y']])
        .split('\n')
        .slice(2),
    ).to.deep.equal(['x', '   y']);
  });

  it('cuts long cells with an ellipsis', () => {
    const columns = [{ title: 't', maxWidth: 4 }];
    expect(
      table(columns, [['12345'], ['1234']])
        .split('\n')
        .slice(2),
    ).to.deep.equal(['123…', '1234']);
  });

  it('keeps a cell on one line', () => {
    expect(table([{ title: 't' }], [['one\n  two']]).split('\n')).to.have.lengthOf(3);
  });

  it('counts an emoji once', () => {
    const [, rule] = table([{ title: 't' }], [['😀😀']]).split('\n');
    expect(rule).to.equal('──');
  });

  it('shows its titles without rows', () => {
    expect(table([{ title: 'name' }], [])).to.equal('name\n────');
  });
});
