import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Where a module or a declaration names another one. */
const named = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/**
 * The files that users of the package import: those that `exports` of package.json names, and what these import in turn,
 * with their source maps.
 *
 * @param exports of package.json
 * @param folder where the build lies now
 * @param dist where package.json says that it lies, relative to the project
 */
export function exportedFiles(exports, folder, dist) {
  const files = new Set(
    Object.values(exports)
      .flatMap((target) => (typeof target === 'string' ? [target] : Object.values(target)))
      .map((target) => join(folder, relative(dist, target)))
      .filter((file) => existsSync(file)),
  );
  for (const file of files) {
    if (/\.d\.ts$|\.js$/.test(file)) {
      for (const each of importedBy(file)) files.add(each);
      if (existsSync(`${file}.map`)) files.add(`${file}.map`);
    }
  }
  return files;
}

/** Declarations name the TypeScript of each other (`./a.ts` for `./a.d.ts`). */
function importedBy(file) {
  return Array.from(readFileSync(file, 'utf8').matchAll(named), ([, name]) =>
    join(dirname(file), name.replace(/\.ts$/, '.d.ts')),
  );
}
