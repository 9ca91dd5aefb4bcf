import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { LEFT_OUT_FILE } from './left-out.ts';

// Mocha loads this module in its main process before it loads tests or starts processes for them.
// Those processes inherit the setting, and so does a mocha that a test starts.
const ownFile = process.env[LEFT_OUT_FILE] === undefined ? makeFile() : undefined;

function makeFile(): string {
  const file = join(mkdtempSync(join(tmpdir(), 'left-out-')), 'notes');
  writeFileSync(file, '');
  process.env[LEFT_OUT_FILE] = file;
  return file;
}

/**
 * Runs once in mocha's main process, after its own closing lines: one line for each skipped part.
 */
export function mochaGlobalTeardown(): void {
  if (ownFile === undefined) return;
  // Standard error, because a reporter may write JSON to standard output.
  for (const line of linesOf(readFileSync(ownFile, 'utf8'))) console.error(`Left out: ${line}`);
  rmSync(dirname(ownFile), { recursive: true });
}

/** The notes without repetitions, in alphabetical order. */
function linesOf(notes: string): string[] {
  return [...new Set(notes.split('\n').filter((line) => line !== ''))].sort();
}
