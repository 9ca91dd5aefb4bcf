import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { projectRoot } from '../support/project-root.ts';
import { read, rowsOf } from './documents.ts';

const document = 'docs/explanation/security.md';

/**
 * A test as the table names it: its file and its title. `…` in a title stands for the part that
 * differs between cases.
 */
const testCell = /^`(test\/[^`]+)`: (.+)$/;

describe(`the table of attacks in ${document}`, () => {
  const rows = rowsOf(read(document)).filter(
    ([first = '', , , test]) => !first.startsWith('---') && test !== 'test',
  );

  it('names an existing test for each attack', () => {
    const broken = rows.flatMap(([attack = '', , , cell = '']) => {
      const [, file = '', title = ''] = testCell.exec(cell) ?? [];
      const isNamed = existsSync(join(projectRoot, file)) && titlesIn(file).some(fits(title));
      return isNamed ? [] : [`${attack}: ${cell}`];
    });
    expect(broken).to.deep.equal([]);
    expect(rows.length).to.be.greaterThan(50);
  });

  it('says for each attack what it did before, and what it does now', () => {
    expect(rows.filter((cells) => cells.length !== 4 || cells.includes(''))).to.deep.equal([]);
  });

  it('has every item of the OWASP API Security Top 10', () => {
    const items = rows.flatMap(([first = '']) => /^API(\d+) /.exec(first)?.[1] ?? []);
    expect(items).to.deep.equal(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']);
  });
});

/** The titles of the tests of a file as written, with `…` for each inserted value. */
function titlesIn(file: string): readonly string[] {
  const code = read(file);
  return [...code.matchAll(/\bit\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)].map(([, , title = '']) =>
    title.replaceAll(/\$\{[^}]*\}/g, '…'),
  );
}

/** A title may continue after a final `…`. */
const fits =
  (named: string) =>
  (title: string): boolean =>
    title === named || (named.endsWith('…') && title.startsWith(named));
