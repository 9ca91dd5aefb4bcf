#!/usr/bin/env node
import { once } from 'node:events';
import { askOnTerminal } from './cli/calling/confirm.ts';
import { OutputLostError } from './cli/calling/command-errors.ts';
import { readInput } from './cli/calling/read-input.ts';
import type { OutputStream } from './cli/calling/cli-environment.ts';
import { createCommandLine } from './cli/commands.ts';
import { SystemClock } from './clock.ts';
import { withSecretFiles } from './configuration/secret-files.ts';
import { ConfigurationError, type Environment } from './configuration/setting-readers.ts';
import { endWithNpmShell } from './starting/npm-shell.ts';
import { createFilesPrivately } from './starting/private-files.ts';
import { version } from './version.ts';

// The command line as a process: `svc …`.

const screenOf = (stream: NodeJS.WriteStream): OutputStream => ({
  write: (text) => void stream.write(text),
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
// If standard output is lost, the command still closes its stores.
let lost: OutputLostError | undefined;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  lost = new OutputLostError(error);
  if (lost.message !== '') process.stderr.write(`svc: ${lost.message}\n`);
  process.exitCode = lost.exitCode;
  interrupted.abort(lost);
});
process.stderr.on('error', () => {});

let env: Environment = {};
try {
  env = withSecretFiles(process.env);
} catch (error) {
  if (!(error instanceof ConfigurationError)) throw error;
  process.stderr.write(`svc: ${error.message}\n`);
  process.exit(2);
}
createFilesPrivately();
const line = createCommandLine(
  {
    env,
    out: screenOf(process.stdout),
    err: screenOf(process.stderr),
    input: () => readInput(process.stdin, interrupted.signal),
    confirm: process.stdin.isTTY
      ? (question) =>
          askOnTerminal(question, {
            input: process.stdin,
            output: process.stderr,
            signal: interrupted.signal,
          })
      : null,
    clock: new SystemClock(),
    signal: interrupted.signal,
  },
  version,
);
const exitCode = await line.run(process.argv.slice(2));
process.exitCode = lost?.exitCode ?? exitCode;
