import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Observation } from '../support/interface-record.ts';
import { projectRoot } from '../support/project-root.ts';
import { read } from './documents.ts';
import { coveragePage, sectionsOf } from './interface-coverage-page.ts';
import { shownElsewhere } from './interface-elsewhere.ts';
import { coverageNeeds } from './interface-needs.ts';

const text = read('docs/reference/interface-coverage.md');
const tests = [...text.matchAll(/^- `(test\/[^`]+)`: (.+)$/gm)].map(
  ([, file = '', title = '']) => ({
    file,
    title,
  }),
);

/** The titles of the tests in a source, as patterns: `${…}` stands for any string. */
function titlesIn(source: string): readonly RegExp[] {
  const calls = source.matchAll(/\bit\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g);
  return [...calls].map(([, , title = '']) => {
    const parts = title.replaceAll(/\\(['"`])/g, '$1').split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/);
    const escaped = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    return new RegExp(`^${escaped.join('.*')}$`);
  });
}

/** The titles in a test file and in the files beside it, which may define some of its tests. */
function titlesBeside(file: string): readonly RegExp[] {
  const folder = dirname(file);
  const sources = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  return sources.flatMap((name) => titlesIn(readFileSync(join(folder, name), 'utf8')));
}

const observation: Observation = {
  file: 'test/a.test.ts',
  title: 'lists',
  endpoint: 'GET /a',
  status: 200,
  error: null,
  headers: ['etag'],
  takes: ['limit'],
  answers: ['name'],
};

describe('the coverage of the interface', () => {
  it('names tests that exist; if not, run `npm run docs:coverage`', () => {
    const named = [...tests, ...shownElsewhere];
    const files = [...new Set(named.map(({ file }) => file))];
    const titles = new Map(files.map((file) => [file, titlesBeside(join(projectRoot, file))]));
    const gone = named.filter(
      ({ file, title }) => !titles.get(file)?.some((pattern) => pattern.test(title)),
    );
    expect(tests.length).to.be.greaterThan(100);
    expect(gone.map(({ file, title }) => `${file}: ${title}`)).to.deep.equal([]);
  });

  it('has exactly the statuses, headers, fields and errors of the interface', () => {
    const wanted = sectionsOf(coverageNeeds()).flatMap(({ heading, items }) =>
      items.map(({ shown }) => `${heading}: ${shown}`),
    );
    const had = text
      .split(/^## /m)
      .slice(1)
      .flatMap((section) => {
        const [heading = ''] = section.split('\n', 1);
        return [...section.matchAll(/^ {2}- (.+)$/gm)].flatMap(([, items = '']) =>
          items.split(', ').map((item) => `${heading}: ${item}`),
        );
      });
    expect([...new Set(had)]).to.have.members([...new Set(wanted)]);
  });

  it('names a test for its requests and responses, and reports items without a test', () => {
    const need = { endpoint: 'GET /a', paths: ['GET /a'], statuses: ['200', '503'] };
    const fields = [['takes', 'GET /a', ['limit']] as const];
    const needs = [{ ...need, headers: ['ETag'], fields }];
    const { text, missing } = coveragePage(needs, [observation]);
    expect(text).to.include('- `test/a.test.ts`: lists\n  - `200`, `ETag`, takes `limit`');
    expect(missing).to.include('`GET /a`: `503`').and.to.not.include('`GET /a`: `200`');
    const shows = { '`GET /a`': ['`200`', '`503`'] };
    const elsewhere = [{ file: 'test/b.test.ts', title: 'fails', shows }];
    const both = coveragePage(needs, [observation], elsewhere);
    expect(both.text).to.include('- `test/b.test.ts`: fails\n  - `503`\n');
    expect(both.missing).to.not.include('`GET /a`: `503`');
  });

  it('reads titles as written in sources', () => {
    const source = "it('a', f); it(`b ${c} d`, f); it('d\\'e', f); describe('x', f); exit('y')";
    const patterns = titlesIn(source);
    for (const title of ['a', 'b 12 d', "d'e"]) {
      expect(
        patterns.some((pattern) => pattern.test(title)),
        title,
      ).to.equal(true);
    }
    expect(patterns).to.have.lengthOf(3);
  });
});
