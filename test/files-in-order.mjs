import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const project = join(import.meta.dirname, '..');

/** Tests of whole processes, which take long and wait most of the time. */
const SLOW = join('test', 'process');

/** The last slow test begins at this fraction of the run, so that the run does not end with a slow test alone. */
const BEGUN = 0.85;

/**
 * All test files, in an order that keeps the processors busy. The slow ones are spread among the others, which compute
 * while the slow ones wait. Mocha's own order is alphabetical.
 * @returns their paths, relative to the project
 */
export function filesInOrder() {
  const files = readdirSync(join(project, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => relative(project, join(entry.parentPath, entry.name)))
    .sort();
  const slow = files.filter((file) => file.startsWith(SLOW));
  const others = files.filter((file) => !file.startsWith(SLOW));
  const between = (others.length * BEGUN) / slow.length;
  const placed = [
    ...slow.map((file, index) => ({ file, place: index * between })),
    ...others.map((file, index) => ({ file, place: index })),
  ];
  return placed.sort((a, b) => a.place - b.place).map(({ file }) => file);
}
