import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.ts';

/** A text of the project, by its path from the project's folder. */
export function read(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}

/** Every text that people are to read. */
export const documents: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'deploy/README.md',
  ...readdirSync(join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** The cells of the rows of all tables in a text, without the code marks around them. */
export function rowsOf(text: string): readonly (readonly string[])[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replace(/^`(.*)`$/, '$1')),
    );
}

/** What stands between code marks within the lines of a text; blocks of code are left out. */
export function codeIn(text: string): readonly string[] {
  const lines = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  return [...lines.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code ?? '');
}

/** Where GitHub lets one link to: the headings of a text, as it writes them in addresses. */
export function anchorsOf(text: string): readonly string[] {
  const lines = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  return [...lines.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    (heading ?? '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
