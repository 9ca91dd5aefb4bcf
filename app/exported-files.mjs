import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Imports of modules and declarations. */
const named = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/**
 * The files that users of the package import: the `exports` of package.json and their imports, with source maps.
 *
 * @param exports of package.json
 * @param folder the folder of the build
 * @param dist its folder in package.json, relative to the project
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

/** Declarations import `./a.ts` for `./a.d.ts`. */
function importedBy(file) {
  return Array.from(readFileSync(file, 'utf8').matchAll(named), ([, name]) =>
    join(dirname(file), name.replace(/\.ts$/, '.d.ts')),
  );
}
