// `node app/launch.mjs <main|demo|cli> [arguments]`: builds the service where `dist/` is stale, then runs the
// entry in this same process. npm runs one plain command that way, on every system: its exit code is the
// service's, without `exec`, which the Windows shell does not have.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildIfStale } from './build-if-stale.mjs';

/** Between two looks at whether the shell of npm is still there. Milliseconds. */
const LOOK_EVERY = 1000;

/** Before the build: the shell may end while that runs. */
const shell = process.ppid;

buildIfStale();
if (process.env.npm_lifecycle_event !== undefined) endWithShell();
const entry = join(import.meta.dirname, '..', 'dist', 'app', `${process.argv[2]}.js`);
// As if Node had been given the entry itself: its own arguments come after it.
process.argv.splice(1, 2, entry);
await import(pathToFileURL(entry).href);

/**
 * npm passes signals on to its shell. Some shells put their last command in their own place (bash); others end by
 * the signal and tell their child nothing (dash). Their end is then taken for the SIGTERM that was lost.
 */
function endWithShell() {
  const looking = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(looking);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_EVERY);
  looking.unref();
}
