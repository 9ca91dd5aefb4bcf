#!/usr/bin/env node
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { SystemClock } from './clock.ts';
import { createCommandLine } from './cli/commands.ts';
import type { Screen } from './cli/calling/surroundings.ts';

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

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interrupted.abort());
}
// `svc … | head`: who has read enough closes the pipe.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

const line = createCommandLine(
  {
    env: process.env,
    out: screenOf(process.stdout),
    err: screenOf(process.stderr),
    input: () => text(process.stdin),
    clock: new SystemClock(),
    signal: interrupted.signal,
  },
  version,
);
process.exitCode = await line.run(process.argv.slice(2));
