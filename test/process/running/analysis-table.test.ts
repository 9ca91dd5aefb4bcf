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

  it('says the first and the last of what is there, also where other rows of the group have none', () => {
    const rows = [{}, { why: 'paused' }, { why: 'missed' }, { why: null }, {}];
    const words = ['--show', 'first=first(row.why)', '--show', 'last=last(row.why)'];
    expect(table(rows, ...words)).to.match(/\npaused +missed\n$/);
  });
});
