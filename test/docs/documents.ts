import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.ts';

/** A document of the project, by its path from the project's folder. */
export function read(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}

/** Every document for readers. */
export const documents: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'deploy/README.md',
  'sdk/python/README.md',
  'examples/approve-and-notify/README.md',
  ...readdirSync(join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** The cells of the rows of all tables in a document, without their backticks. */
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

/** The inline code of a document; excludes code blocks. */
export function codeIn(text: string): readonly string[] {
  const lines = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  return [...lines.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code ?? '');
}

/** The anchors of a document's headings, as GitHub writes them in addresses. */
export function anchorsOf(text: string): readonly string[] {
  const lines = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  return [...lines.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    (heading ?? '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
