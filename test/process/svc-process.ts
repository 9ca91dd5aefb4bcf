import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.ts';

/** How a call of `svc` ended, and what it printed. */
export interface EndedCall {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A call that has not ended by then never does, and may hold a processor. Milliseconds. */
const LONGEST = 120_000;

/**
 * Calls `svc` of the build in a process of its own (see `buildService`). A store that other processes work on too is
 * restored so, and not in the process of the tests, which must not open what it has moved.
 *
 * @param env its whole environment, but for the `PATH`
 */
export function svcProcess(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<EndedCall> {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [join(projectRoot, 'dist/app/cli.js'), ...words], {
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LONGEST,
    killSignal: 'SIGKILL',
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  return new Promise((ended) => child.once('close', (code) => ended({ code, out, err })));
}
