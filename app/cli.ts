#!/usr/bin/env node
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { SystemClock } from './clock.ts';
import { withSecretFiles } from './configuration/secret-files.ts';
import { ConfigurationError, type Environment } from './configuration/setting-readers.ts';
import { createCommandLine } from './cli/commands.ts';
import { OutputLost } from './cli/calling/faults.ts';
import { readInput } from './cli/calling/input.ts';
import type { Screen } from './cli/calling/surroundings.ts';
import { endWithNpmShell } from './starting/npm-shell.ts';
import { createFilesPrivately } from './starting/private-files.ts';

/** The command line as a process: `svc …`. */

const version = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  }
).version;

const screenOf = (stream: NodeJS.WriteStream): Screen => ({
  write: (said) => void stream.write(said),
  drained: async () => {
    if (stream.writableNeedDrain) await once(stream, 'drain');
  },
  isTerminal: stream.isTTY,
  columns: stream.isTTY ? stream.columns : undefined,
});

endWithNpmShell();
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interrupted.abort());
}
/** The answer can't be written any more: what is under way ends in order, as its stores are open. */
let lost: OutputLost | undefined;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  lost = new OutputLost(error);
  if (lost.message !== '') process.stderr.write(`svc: ${lost.message}\n`);
  process.exitCode = lost.exitCode;
  interrupted.abort(lost);
});
// What stands beside the answer may be lost.
process.stderr.on('error', () => {});

let env: Environment = {};
try {
  env = withSecretFiles(process.env);
} catch (error) {
  if (!(error instanceof ConfigurationError)) throw error;
  process.stderr.write(`svc: ${error.message}\n`);
  process.exit(2);
}
// What commands write (stores, backups, exports, tokens) is their caller's alone, as the service's files are.
createFilesPrivately();
const line = createCommandLine(
  {
    env,
    out: screenOf(process.stdout),
    err: screenOf(process.stderr),
    input: () => readInput(process.stdin, interrupted.signal),
    clock: new SystemClock(),
    signal: interrupted.signal,
  },
  version,
);
const exitCode = await line.run(process.argv.slice(2));
process.exitCode = lost?.exitCode ?? exitCode;
