// `node app/launch.mjs <main|demo|cli> [arguments]`: builds the service where `dist/` is stale, then runs the
// entry in this same process. npm runs one plain command that way, on every system: its exit code is the
// service's, without `exec`, which the Windows shell does not have.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildIfStale } from './build-if-stale.mjs';

/** Exit code of a process that SIGTERM ended. */
const TERMINATED = 143;

const shell = process.ppid;
buildIfStale();
// A started entry ends with the shell of npm by itself (`starting/npm-shell.ts`).
const isShellGone = process.env.npm_lifecycle_event !== undefined && process.ppid !== shell;
if (isShellGone) process.exit(TERMINATED);
const entry = join(import.meta.dirname, '..', 'dist', 'app', `${process.argv[2]}.js`);
// As if Node had been given the entry itself: its own arguments come after it.
process.argv.splice(1, 2, entry);
await import(pathToFileURL(entry).href);
