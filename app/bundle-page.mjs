// Bundles the web page. Its modules become one file and its style sheets another, with a hash of the content in each
// name, so that browsers can cache them forever. Each file is also stored compressed.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { build, transform } from 'esbuild';

const library = join(import.meta.dirname, '../extensions/webui/page-library.mjs');
const styleLink = /\s*<link rel="stylesheet" href="static\/([^"]+)" \/>/g;

/** The page's modules import their libraries from a file beside them, as browsers resolve no package names. */
const libraries = {
  name: 'libraries',
  setup({ onResolve }) {
    onResolve({ filter: /\/preact\.js$/ }, () => ({ path: library }));
  },
};

async function scriptIn(page) {
  const { outputFiles } = await build({
    entryPoints: [join(page, 'main.js')],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    plugins: [libraries],
    logLevel: 'warning',
  });
  return outputFiles[0].text;
}

/** The style sheets that the page links, in their order. */
async function stylesIn(page, markup) {
  const files = [...markup.matchAll(styleLink)].map(([, file]) => file);
  const styles = files.map((file) => readFileSync(join(page, file), 'utf8')).join('\n');
  return (await transform(styles, { loader: 'css', minify: true, logLevel: 'warning' })).code;
}

/** Renames `main.js` to `main.0123456789abcdef.js`. */
function hashed(name, text) {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  return name.replace(/(?=\.\w+$)/, `.${hash}`);
}

/**
 * Replaces the page's sources in a build with the bundled files.
 * @param folder of the build
 * @throws esbuild's errors
 */
export async function bundlePage(folder) {
  const page = join(folder, 'extensions/webui/static');
  if (!existsSync(page)) return;
  const source = readFileSync(join(page, 'index.html'), 'utf8');
  const [script, styles] = [await scriptIn(page), await stylesIn(page, source)];
  const names = { script: hashed('main.js', script), styles: hashed('page.css', styles) };
  const markup = source
    .replace(styleLink, '')
    .replace(
      /(\s*)<script type="module" src="static\/main\.js">/,
      `$1<link rel="stylesheet" href="static/${names.styles}" />$1<script type="module" src="static/${names.script}">`,
    );
  rmSync(page, { recursive: true });
  mkdirSync(page);
  for (const [name, text] of [
    ['index.html', markup],
    [names.script, script],
    [names.styles, styles],
  ]) {
    writeFileSync(join(page, name), text);
    writeFileSync(join(page, `${name}.br`), brotliCompressSync(text));
    writeFileSync(join(page, `${name}.gz`), gzipSync(text, { level: 9 }));
  }
}
