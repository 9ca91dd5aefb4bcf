import { readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

const skipped = new Set(['node_modules', 'dist', 'data', 'coverage']);

/**
 * All TypeScript files of a directory except hidden ones, as relative paths with forward slashes.
 */
export function typescriptFiles(root: string, folder = root): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name.startsWith('.')) return [];
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : typescriptFiles(root, path);
    return entry.name.endsWith('.ts') ? [relative(root, path).split(sep).join('/')] : [];
  });
}
