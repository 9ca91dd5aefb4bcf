import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeBenchFolder } from '../bench-folder.ts';
import { writeListed, type ListedIds } from './http-lists-store.ts';

/** Marks the log of a kept folder as complete. */
const NOTE = 'listed.json';

/** A folder with the log of many runs and tasks; the first service over it builds the views. */
export interface ListedStore {
  readonly directory: string;
  readonly runs: number;
  readonly ids: ListedIds;
}

/** Stores by size, for all repeats of this process. */
const stores = new Map<number, ListedStore>();

/**
 * The store with the given number of runs.
 * @param kept a folder that stays and is used again with its views
 * @throws Error if the kept folder has another number of runs or other content
 */
export async function listedStore(runs: number, kept: string | undefined): Promise<ListedStore> {
  if (kept !== undefined) return keptStore(runs, kept);
  const known = stores.get(runs);
  if (known !== undefined) return known;
  const directory = await makeBenchFolder('lists');
  const store = { directory, runs, ids: await writeListed(directory, runs) };
  stores.set(runs, store);
  return store;
}

async function keptStore(runs: number, directory: string): Promise<ListedStore> {
  const note = join(directory, NOTE);
  if (existsSync(note)) {
    const found = JSON.parse(await readFile(note, 'utf8')) as Omit<ListedStore, 'directory'>;
    if (found.runs === runs) return { ...found, directory };
    throw new Error(`the store in ${directory} has ${String(found.runs)} runs`);
  }
  await mkdir(directory, { recursive: true });
  if ((await readdir(directory)).length > 0) {
    throw new Error(`${directory} is not empty and has no complete store of this benchmark`);
  }
  const ids = await writeListed(directory, runs);
  await writeFile(note, JSON.stringify({ runs, ids }));
  return { directory, runs, ids };
}
