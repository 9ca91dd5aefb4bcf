// Joins what tsc has emitted, and the packages that every start loads, into few files. Loading some eleven hundred modules
// one by one took most of a start. A file keeps its place: an entry is replaced by its bundle, what several entries
// share lies in `chunks/`.

import { mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { build } from 'esbuild';

/** What is started as a process; threads and extensions are found by their names and manifests. */
const processes = ['app/main.js', 'app/cli.js', 'app/demo.js'];

/**
 * Packages that stay as they are: one with a native part, and those that few starts load, or that come with files
 * of their own.
 */
const external = [
  '@photostructure/sqlite',
  '@eventstore/db-client',
  'mongodb',
  '@opentelemetry/*',
  '@modelcontextprotocol/sdk',
  'swagger-ui-dist',
];

/** Packages of CommonJS ask for others by `require`. */
const banner = `import { createRequire as createRequireOfBundle } from 'node:module';
import { join as joinOfBundle } from 'node:path';
const require = createRequireOfBundle(import.meta.url);`;

function entriesIn(folder) {
  const files = readdirSync(folder, { recursive: true }).map(String);
  // All but the module that starts them.
  const threads = files.filter((file) => file.endsWith('-thread.js') && !/start-thread/.test(file));
  const extensions = files
    .filter((file) => file.endsWith(`${sep}extension.json`))
    .map((file) => {
      const { module } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
      return join(dirname(file), module);
    });
  const started = processes.filter((file) => files.includes(file));
  return [...started, ...threads, ...extensions];
}

/**
 * Modules name files beside them by their own address. In a bundle that would be the bundle's: each says which module it
 * means, and {@link addressed} puts in where that lies, seen from the file it has come to.
 */
const addresses = (folder) => ({
  name: 'addresses',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(`${folder}${sep}`)) return undefined;
      const source = readFileSync(path, 'utf8');
      if (!source.includes('import.meta.')) return undefined;
      const module = JSON.stringify(relative(folder, path));
      const contents = source
        .replaceAll('import.meta.url', `addressOf(${module})`)
        .replaceAll('import.meta.dirname', `folderOf(${module})`);
      if (contents.includes('import.meta.')) {
        return {
          errors: [{ text: `${path}: only url and dirname of import.meta lead out of a bundle` }],
        };
      }
      return { contents, loader: 'js' };
    });
  },
});

/** Puts in the addresses of modules, seen from the file that asks for them. */
function addressed(text, file, folder) {
  const seen = (module) => relative(dirname(file), join(folder, module));
  return text
    .replace(
      /\baddressOf\("([^"]+)"\)/g,
      (_, module) => `new URL(${JSON.stringify(seen(module))}, import.meta.url).href`,
    )
    .replace(
      /\bfolderOf\("([^"]+)"\)/g,
      (_, module) => `joinOfBundle(import.meta.dirname, ${JSON.stringify(dirname(seen(module)))})`,
    );
}

/**
 * @param emitted the folder that tsc has written to, and where the bundles come to
 * @returns the paths of the files that it wrote
 * @throws what esbuild says when it can't
 */
export async function bundle(emitted) {
  const folder = realpathSync(emitted);
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: entriesIn(folder),
    outbase: '.',
    outdir: '.',
    allowOverwrite: true,
    write: false,
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    banner: { js: banner },
    external,
    plugins: [addresses(folder)],
    logLevel: 'warning',
  });
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, path.endsWith('.js') ? addressed(text, path, folder) : text);
  }
  await bundlePageLibrary(folder);
  return outputFiles.map(({ path }) => join(emitted, relative(folder, path)));
}

/** The web page's libraries, from their packages, as one file beside the page's own. */
function bundlePageLibrary(folder) {
  return build({
    entryPoints: [join(import.meta.dirname, '../extensions/webui/page-library.mjs')],
    outfile: join(folder, 'extensions/webui/static/preact.js'),
    bundle: true,
    format: 'esm',
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
}
