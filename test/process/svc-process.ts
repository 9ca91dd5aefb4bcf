import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.ts';

/** The exit and the output of a call of `svc`. */
export interface EndedCall {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The time limit of a call. A call that takes longer would never end, and might keep a CPU busy. Milliseconds. */
const TIMEOUT_MS = 120_000;

/**
 * Calls the built `svc` in a process of its own (see `buildService`). A restore of a store that
 * other processes use runs here, because the test process must not open files that it has moved.
 * @param env its whole environment, except for the `PATH`
 */
export function svcProcess(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<EndedCall> {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [join(projectRoot, 'dist/app/cli.js'), ...words], {
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  return new Promise((ended) => child.once('close', (code) => ended({ code, out, err })));
}
