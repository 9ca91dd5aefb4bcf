import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The project's folder, even for tests that were compiled elsewhere. */
export const projectRoot: string = find(import.meta.dirname);

function find(folder: string): string {
  if (existsSync(join(folder, 'package-lock.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error('No package-lock.json in any folder above the tests');
  return find(parent);
}
