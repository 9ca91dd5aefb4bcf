import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot } from '../test/support/project-root.ts';

/** The folder of all benchmarks. It is beside the code, so its disk is measured. A temporary folder may be memory. */
const parent = join(projectRoot, '.bench');
const folders = new Set<string>();
const cleanups = new Set<() => void>();
let isWatching = false;

/** Makes an empty folder. It is removed when this process ends, also by Ctrl-C; after a kill, by the next process. */
export async function makeBenchFolder(name: string): Promise<string> {
  watch();
  mkdirSync(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, `${process.pid}-${name}-`));
  folders.add(folder);
  return folder;
}

/** Removes such a folder. */
export async function removeBenchFolder(folder: string): Promise<void> {
  folders.delete(folder);
  await rm(folder, { recursive: true, force: true });
}

/** Works in a new folder and removes it, or in a `kept` folder, which stays. */
export async function withBenchFolder<T>(
  name: string,
  work: (folder: string) => Promise<T>,
  kept?: string,
): Promise<T> {
  if (kept !== undefined) return work(kept);
  const folder = await makeBenchFolder(name);
  try {
    return await work(folder);
  } finally {
    await removeBenchFolder(folder);
  }
}

/** Registers a synchronous cleanup that runs before the folders are removed. Returns its cancellation. */
export function onBenchExit(cleanup: () => void): () => void {
  watch();
  cleanups.add(cleanup);
  return () => cleanups.delete(cleanup);
}

function watch(): void {
  if (isWatching) return;
  isWatching = true;
  removeLeftovers();
  process.once('exit', removeAll);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      removeAll();
      // `exit` would wait for busy threads and abort.
      process.kill(process.pid, signal);
    });
  }
}

function removeAll(): void {
  for (const cleanup of cleanups) cleanup();
  // A process that was just killed may still be closing its files.
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
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
