import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { typescriptFiles } from '../support/architecture/typescript-files.ts';
import { projectRoot } from '../support/project-root.ts';
import { anchorsOf, codeIn, documents, read } from './documents.ts';

const rooms = ['api', 'app', 'bench', 'domain', 'docs', 'observability'];
const folders = [...rooms, 'projections', 'scheduler', 'stores', 'test'].join('|');
/**
 * A file or a folder of the project, as documents name it: `domain/runs/run.ts`, `stores/sqlite/`.
 */
const projectPath = new RegExp(`^(?:${folders})/[a-z0-9/.-]*$`);

for (const document of documents) {
  describe(document, () => {
    const text = read(document);
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target]) => target ?? '')
      .filter((target) => !/^[a-z]+:/.test(target));

    it('links to files that exist, and to headings in them', () => {
      const broken = links.filter((target) => {
        const [file = '', anchor] = target.split('#', 2);
        const path = file === '' ? document : normalize(join(dirname(document), file));
        if (!existsSync(join(projectRoot, path))) return true;
        return anchor !== undefined && !anchorsOf(read(path)).includes(anchor);
      });
      expect(broken).to.deep.equal([]);
    });

    it('names only existing files of the project', () => {
      const words = codeIn(text).flatMap((code) => code.split(' '));
      const named = words.filter((word) => projectPath.test(word));
      expect(named.filter((path) => !existsSync(join(projectRoot, path)))).to.deep.equal([]);
    });
  });
}

describe('the code', () => {
  it('names only existing documents', () => {
    const missing = typescriptFiles(projectRoot).flatMap((file) =>
      (read(file).match(/\bdocs\/[a-z0-9/-]+\.md\b/g) ?? [])
        .filter((path) => !existsSync(join(projectRoot, path)))
        .map((path) => `${file} names ${path}`),
    );
    expect(missing).to.deep.equal([]);
  });
});

describe('the check of links', () => {
  it('finds the anchors of headings', () => {
    expect(anchorsOf("# Reads see one's own writes\n\n## `GET /a`")).to.deep.equal([
      'reads-see-ones-own-writes',
      'get-a',
    ]);
  });

  it('checks inline code, but not code blocks', () => {
    expect(codeIn('see `domain/runs/run.ts`\n```sh\nls `x`\n```\n')).to.deep.equal([
      'domain/runs/run.ts',
    ]);
  });
});
