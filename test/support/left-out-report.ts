import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { LEFT_OUT_FILE } from './left-out.ts';

/** Runs once in mocha's main process, before the processes that run the tests inherit its environment. */
export function mochaGlobalSetup(): void {
  const file = join(mkdtempSync(join(tmpdir(), 'left-out-')), 'notes');
  writeFileSync(file, '');
  process.env[LEFT_OUT_FILE] = file;
}

/** Runs once in mocha's main process, after its own closing lines: one line for each thing that was left out. */
export function mochaGlobalTeardown(): void {
  const file = process.env[LEFT_OUT_FILE];
  if (file === undefined) return;
  // Standard error, because a reporter may write JSON to standard output.
  for (const line of linesOf(readFileSync(file, 'utf8'))) console.error(`Left out: ${line}`);
  rmSync(dirname(file), { recursive: true });
  delete process.env[LEFT_OUT_FILE];
}

/** The notes without repetitions, in alphabetical order. */
function linesOf(notes: string): string[] {
  return [...new Set(notes.split('\n').filter((line) => line !== ''))].sort();
}
