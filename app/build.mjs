// Builds the service to `dist/` and records a hash of its sources. With `--if-stale` it builds only if the sources have
// changed, so that `npm start` never runs old code. Plain JavaScript, because it runs before the build.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { bundle } from './bundle.mjs';
import { exportedFiles } from './exported-files.mjs';

const project = join(import.meta.dirname, '..');
const dist = join(project, 'dist');
const stampFile = 'built-from.txt';
const configuration = JSON.parse(readFileSync(join(project, 'tsconfig.build.json'), 'utf8'));
const rooms = configuration.include;

/** All files of the rooms, relative to the project, sorted. */
function sources() {
  return rooms
    .filter((room) => existsSync(join(project, room)))
    .flatMap((room) =>
      readdirSync(join(project, room), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(project.length + 1)),
    )
    .sort();
}

/** A hash of contents; times change with a checkout. */
function stampOf(files) {
  const hash = createHash('sha256');
  const settings = ['tsconfig.json', 'tsconfig.build.json', 'package.json', 'package-lock.json'];
  for (const file of [...settings, ...files]) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(project, file)))
      .update('\0');
  }
  return hash.digest('hex');
}

function present() {
  const path = join(dist, stampFile);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

function aboutPackage() {
  return JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
}

/** For the service's version, and for Node to treat the files as modules. */
function writeVersion(folder) {
  const { name, version, type } = aboutPackage();
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name, version, type })}\n`);
}

/** The commands of package.json. */
function commands() {
  const { bin = {} } = aboutPackage();
  return Object.values(bin).map((file) => join(project, file));
}

/** Compiles into a folder. Returns the exit code. */
function compile(folder) {
  const require = createRequire(import.meta.url);
  const compiler = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc');
  const settings = join(project, 'tsconfig.build.json');
  return spawnSync(process.execPath, [compiler, '-p', settings, '--outDir', folder], {
    stdio: 'inherit',
  }).status;
}

/**
 * Deletes the emitted modules that the bundles contain. The exports of package.json stay, because users' bundlers and
 * compilers read them.
 */
function prune(folder, emitted, bundled) {
  const { exports = {} } = aboutPackage();
  const kept = new Set([...bundled, ...exportedFiles(exports, folder, relative(project, dist))]);
  for (const file of emitted) if (!kept.has(file)) rmSync(file);
  removeEmptyFolders(folder);
}

/** The paths of all files in a folder. */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeEmptyFolders(join(folder, entry.name));
  }
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

/** Replaces the last build. */
function replaceDist(fresh, stamp) {
  const old = `${fresh}-old`;
  try {
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
  } catch (error) {
    // A concurrent process has put the same build in place.
    if (present() !== stamp) throw error;
  } finally {
    rmSync(old, { recursive: true, force: true });
  }
}

/** Builds in another folder and then moves it, so that there is never half a build. Returns the exit code. */
async function build(files, stamp) {
  const fresh = join(project, `.dist-${process.pid}`);
  try {
    const status = compile(fresh);
    if (status !== 0) return status ?? 1;
    const emitted = filesIn(fresh);
    // Manifests and pages.
    for (const file of files.filter((path) => !/\.(ts|mjs)$/.test(path))) {
      cpSync(join(project, file), join(fresh, file));
    }
    writeVersion(fresh);
    prune(fresh, emitted, await bundle(fresh));
    // npx does this only for the first build.
    for (const command of commands()) chmodSync(join(fresh, relative(dist, command)), 0o755);
    writeFileSync(join(fresh, stampFile), stamp);
    replaceDist(fresh, stamp);
    return 0;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

const files = sources();
const stamp = stampOf(files);
if (!process.argv.includes('--if-stale') || present() !== stamp) {
  process.exitCode = await build(files, stamp);
}
