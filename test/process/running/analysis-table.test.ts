import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from '../../support/project-root.ts';

describe('the table of rows', () => {
  const table = (rows: readonly object[], ...words: readonly string[]): string => {
    const script = join(projectRoot, 'examples/analysis/table.mjs');
    const input = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const { stdout, stderr, status } = spawnSync(process.execPath, [script, ...words], {
      input,
      encoding: 'utf8',
    });
    expect(status, stderr).to.equal(0);
    return stdout;
  };

  it('shows the first and last existing values, even if other rows of the group have none', () => {
    const rows = [{}, { why: 'paused' }, { why: 'missed' }, { why: null }, {}];
    const words = ['--show', 'first=first(row.why)', '--show', 'last=last(row.why)'];
    expect(table(rows, ...words)).to.match(/\npaused +missed\n$/);
  });

  it('sorts by shares and by times, too', () => {
    const rows = [
      { of: 'a', ok: false, at: '2026-11-20' },
      { of: 'b', ok: true, at: '2026-11-22' },
      { of: 'b', ok: false, at: '2026-11-21' },
      { of: 'c', ok: true, at: null },
    ];
    const words = ['--by', 'of=row.of', '--show', 'ok=share(row.ok)', '--show', 'at=last(row.at)'];
    const order = (column: string): readonly string[] =>
      Array.from(
        table(rows, ...words, '--sort', column).matchAll(/^([abc]) /gm),
        ([, of = '']) => of,
      );
    expect(order('ok')).to.deep.equal(['c', 'b', 'a']);
    expect(order('at')).to.deep.equal(['b', 'a', 'c']);
  });

  it('ignores missing values in a rank', () => {
    const rows = [{}, {}, {}, { ms: 4 }, { ms: 2 }];
    const words = ['--show', 'p50=p50(row.ms)', '--show', 'p95=p95(row.ms)'];
    expect(table(rows, ...words)).to.match(/\n +2 +4\n$/);
  });
});
