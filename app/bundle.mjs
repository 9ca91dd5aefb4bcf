// Bundles the emitted modules and the packages of every start into few files, because loading 1,100 modules took most of a
// start. Each entry is replaced by its bundle; shared code is in `chunks/`.

import { mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { build } from 'esbuild';
import { bundlePage } from './bundle-page.mjs';

/** The entries of processes; the entries of threads and extensions are found by names and manifests. */
const processes = ['app/main.js', 'app/cli.js', 'app/demo.js'];

/** Packages that are not bundled: with native code or data files, or rarely loaded. */
const external = [
  '@photostructure/sqlite',
  '@aws-sdk/client-s3',
  '@eventstore/db-client',
  'mongodb',
  '@opentelemetry/*',
  '@modelcontextprotocol/sdk',
  'swagger-ui-dist',
];

/** CommonJS packages call `require`. */
const banner = `import { createRequire as createRequireOfBundle } from 'node:module';
import { join as joinOfBundle } from 'node:path';
const require = createRequireOfBundle(import.meta.url);`;

function entriesIn(folder) {
  const files = readdirSync(folder, { recursive: true }).map(String);
  // All threads, without the module that starts them.
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
 * Modules find files beside them by `import.meta`, which in a bundle is the bundle's. This marks the module, and
 * {@link addressed} inserts its path relative to the bundle.
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

/** Inserts the addresses of modules relative to a file. */
function addressed(text, file, folder) {
  const pathTo = (module) => relative(dirname(file), join(folder, module));
  return text
    .replace(
      /\baddressOf\("([^"]+)"\)/g,
      (_, module) => `new URL(${JSON.stringify(pathTo(module))}, import.meta.url).href`,
    )
    .replace(
      /\bfolderOf\("([^"]+)"\)/g,
      (_, module) =>
        `joinOfBundle(import.meta.dirname, ${JSON.stringify(dirname(pathTo(module)))})`,
    );
}

/**
 * Bundles the modules in a folder. Returns the paths of the written files.
 * @param emitted the output folder of tsc
 * @throws esbuild's errors
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
  await bundlePage(folder);
  return outputFiles.map(({ path }) => join(emitted, relative(folder, path)));
}
