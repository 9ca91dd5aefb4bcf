import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot } from '../test/support/project-root.ts';

/** Where all benchmarks work: beside the code, as its disk is what is measured; a temporary folder may be memory. */
const parent = join(projectRoot, '.bench');
const folders = new Set<string>();
const endings = new Set<() => void>();
let watching = false;

/**
 * Makes an empty folder for a benchmark. It goes with {@link removeBenchFolder}, or when this process ends,
 * by Ctrl-C too; what a killed process left is removed by the next one.
 */
export async function makeBenchFolder(name: string): Promise<string> {
  watch();
  mkdirSync(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, `${process.pid}-${name}-`));
  folders.add(folder);
  return folder;
}

/** Removes a folder with all that is in it. */
export async function removeBenchFolder(folder: string): Promise<void> {
  folders.delete(folder);
  await rm(folder, { recursive: true, force: true });
}

/** Something to end, at once, before the folders are removed. Returns what takes it back. */
export function beforeBenchFoldersGo(end: () => void): () => void {
  watch();
  endings.add(end);
  return () => endings.delete(end);
}

function watch(): void {
  if (watching) return;
  watching = true;
  removeLeftovers();
  process.once('exit', removeAll);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      removeAll();
      // Not `exit`, which waits for threads in the middle of their work and aborts where they mind.
      process.kill(process.pid, signal);
    });
  }
}

function removeAll(): void {
  for (const end of endings) end();
  // A process that was just killed may still close its files.
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function removeLeftovers(): void {
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent)) {
    const owner = Number(name.split('-')[0]);
    if (owner > 0 && !isAlive(owner)) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Another user's process is there all the same.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
