import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeBenchFolder } from '../bench-folder.ts';
import { writeListed, type ListedIds } from './http-lists-store.ts';

/** Says of a kept folder that its log is whole, and what is in it. */
const NOTE = 'listed.json';

/** A folder with the log of many runs and tasks; its views are made by the first service that is started over it. */
export interface ListedStore {
  readonly directory: string;
  readonly runs: number;
  readonly ids: ListedIds;
}

/** Of one size, for all works and repeats of this process; they go with the other folders. */
const made = new Map<number, ListedStore>();

/**
 * The store of so many runs.
 *
 * @param kept a folder that stays: made where it is not there, and used again, with its views, where it is
 * @throws Error when the kept folder is of another number of runs, or holds something else
 */
export async function listedStore(runs: number, kept: string | undefined): Promise<ListedStore> {
  if (kept !== undefined) return keptStore(runs, kept);
  const known = made.get(runs);
  if (known !== undefined) return known;
  const directory = await makeBenchFolder('lists');
  const store = { directory, runs, ids: await writeListed(directory, runs) };
  made.set(runs, store);
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
    throw new Error(`the folder ${directory} is not empty, and no whole store of this benchmark`);
  }
  const ids = await writeListed(directory, runs);
  await writeFile(note, JSON.stringify({ runs, ids }));
  return { directory, runs, ids };
}
