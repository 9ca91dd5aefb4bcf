import { expect } from 'chai';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { errorStatuses } from '../../api/errors.ts';
import { projectRoot } from '../support/project-root.ts';
import { read } from './documents.ts';
import { conventions, coverageNeeds } from './interface-needs.ts';

/** A row: of what, what of it, and the test that shows it. */
interface Row {
  readonly of: string;
  readonly what: string;
  readonly file: string;
  readonly title: string;
}

const text = read('docs/reference/interface-coverage.md');
const rows = rowsOf(text);

function rowsOf(document: string): readonly Row[] {
  return document
    .split('\n')
    .map((line) => /^\| (.+?) +\| (.+?) +\| `(test\/[^`]+)`: (.+?) +\|$/.exec(line))
    .filter((found) => found !== null)
    .map(([, of = '', what = '', file = '', title = '']) => ({ of, what, file, title }));
}

const codes = (text: string): readonly string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? '');

/** The titles of tests and of groups of them, as they stand in a source: those of tables with their `${…}`. */
function titlesIn(source: string): ReadonlySet<string> {
  const calls = source.matchAll(/\b(?:it|describe)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g);
  return new Set([...calls].map(([, , title = '']) => title.replaceAll(/\\(['"`])/g, '$1')));
}

const source = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');

/** A file of tests with those of the tests' own that it imports: tables of rows, and what a group shares. */
function withItsParts(path: string): string {
  const text = source(path);
  const own = [...text.matchAll(/from '(\.{1,2}\/[^']+)'/g)]
    .map(([, name = '']) => normalize(join(dirname(path), name)))
    .filter((name) => name.startsWith('test/') && existsSync(join(projectRoot, name)));
  return [text, ...own.map(source)].join('\n');
}

const names = (text: string, word: string): boolean =>
  new RegExp(String.raw`(?<!\w)${word}(?!\w)`).test(text);

describe('the coverage of the interface', () => {
  const files = new Set(rows.map(({ file }) => file));

  it('names tests that are there', () => {
    const lines = text.split('\n').filter((line) => /^\| (?!of |-)/.test(line));
    expect(rows.length).to.equal(lines.length).and.to.be.greaterThan(200);
    const titles = new Map([...files].map((file) => [file, titlesIn(source(file))]));
    const gone = rows.filter(({ file, title }) => titles.get(file)?.has(title) !== true);
    expect(gone.map(({ file, title }) => `${file}: ${title}`)).to.deep.equal([]);
  });

  it('names tests whose files name the fields', () => {
    const texts = new Map([...files].map((file) => [file, withItsParts(file)]));
    const silent = rows.flatMap(({ what, file }) =>
      /^(takes|answers) /.test(what)
        ? codes(what)
            .filter((field) => !names(texts.get(file) ?? '', field))
            .map((field) => `${file}: ${field}`)
        : [],
    );
    expect(silent).to.deep.equal([]);
  });

  const shown = (of: string, what: string): boolean =>
    rows.some((row) => codes(row.of).includes(of) && codes(row.what).includes(what));

  it('has every endpoint by each of its paths, with the statuses and headers of success', () => {
    const missing = coverageNeeds().flatMap(({ paths, statuses, headers }) =>
      paths.flatMap((path) =>
        [...statuses, ...headers]
          .filter((each) => !shown(path, each))
          .map((each) => `${path} ${each}`),
      ),
    );
    expect(missing).to.deep.equal([]);
  });

  it('has every field that is taken or answered', () => {
    const missing = coverageNeeds().flatMap(({ fields }) =>
      (fields ?? []).flatMap(([, of, list]) =>
        list.filter((field) => !shown(of, field)).map((field) => `${of} ${field}`),
      ),
    );
    const anywhere = rows.flatMap(({ of, what }) => (of.startsWith('any ') ? codes(what) : []));
    const absent = conventions.filter((field) => !anywhere.includes(field));
    expect([...new Set(missing), ...absent]).to.deep.equal([]);
  });

  it('has every error with its status', () => {
    const missing = Object.entries(errorStatuses).filter(
      ([code, status]) => !shown(code, String(status)),
    );
    expect(missing).to.deep.equal([]);
  });

  it('reads titles as they stand in sources', () => {
    const text =
      "it('a', f); it(`b ${c}`, f); describe(\n  \"it's\", f); it('d\\'e', f); exit('x')";
    expect([...titlesIn(text)]).to.deep.equal(['a', 'b ${c}', "it's", "d'e"]);
  });
});
