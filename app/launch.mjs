// `node app/launch.mjs <main|demo|cli> [arguments]`: builds the service if `dist/` is stale, then runs the entry in this
// process. npm scripts thus work without `exec`, which Windows lacks, and exit with the service's code.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildIfStale } from './build-if-stale.mjs';

/** The exit code after SIGTERM. */
const TERMINATED = 143;

const shell = process.ppid;
buildIfStale();
// A started entry does this itself (`starting/npm-shell.ts`).
const isShellGone = process.env.npm_lifecycle_event !== undefined && process.ppid !== shell;
if (isShellGone) process.exit(TERMINATED);
const entry = join(import.meta.dirname, '..', 'dist', 'app', `${process.argv[2]}.js`);
// As if Node had been started with the entry.
process.argv.splice(1, 2, entry);
await import(pathToFileURL(entry).href);
