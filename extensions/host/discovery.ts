import { readFile, readdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import {
  MANIFEST,
  ManifestError,
  codeOf,
  parseManifest,
  readManifest,
  type Manifest,
} from './manifest.ts';
import { findPlugins } from './plugins.ts';

/** Where extensions come from, in the order in which they win when an id is found twice. */
export const sources = ['builtin', 'env_dir', 'entry_point'] as const;
export type Source = (typeof sources)[number];

/** An extension that was found, or what is wrong with it. */
export type Found = FoundExtension | FoundFault;

export interface FoundExtension {
  readonly kind: 'extension';
  /** What it is listed under. */
  readonly key: string;
  readonly source: Source;
  /** Absolute. */
  readonly folder: string;
  readonly manifest: Manifest;
}

export interface FoundFault {
  readonly kind: 'fault';
  readonly key: string;
  readonly source: Source;
  /** For people; without paths. */
  readonly reason: string;
  readonly manifest: Manifest | null;
}

export interface Places {
  /** The folder of the built-in ones. */
  readonly builtIn: string;
  /** Of `SVC_EXT_PATHS`: each an extension's folder, or a folder of them. */
  readonly paths: readonly string[];
  /** Folders whose `node_modules` are looked through for packages with `svc.plugins`. */
  readonly packagesOf: readonly string[];
}

/**
 * Looks for extensions. Never rejects: what can't be read is listed as a fault.
 * @returns in the order of {@link sources}, each key once
 */
export async function discover(places: Places): Promise<readonly Found[]> {
  const builtIn = await inFolder(places.builtIn, 'builtin');
  const given = await Promise.all(places.paths.map((path) => inFolder(resolve(path), 'env_dir')));
  const plugins = await findPlugins(places.packagesOf);
  return withoutDoubles([...builtIn, ...given.flat(), ...plugins]);
}

/** A folder with a manifest is an extension; one without is a folder of them. */
async function inFolder(folder: string, source: Source): Promise<readonly Found[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    if (entries.some(({ name }) => name === MANIFEST)) return [await readExtension(folder, source)];
    const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
    const names = folders.map(({ name }) => name).filter((name) => !name.startsWith('.'));
    const found = await Promise.all(
      names.sort().map(async (name) => {
        const inside = join(folder, name);
        const has = (await readdir(inside).catch((): string[] => [])).includes(MANIFEST);
        return has ? [await readExtension(inside, source)] : [];
      }),
    );
    return found.flat();
  } catch (error) {
    const reason = `the folder can't be read: ${codeOf(error)}`;
    return [{ kind: 'fault', key: basename(folder), source, reason, manifest: null }];
  }
}

async function readExtension(folder: string, source: Source): Promise<Found> {
  try {
    const manifest = readManifest(parseManifest(await readFile(join(folder, MANIFEST), 'utf8')));
    return { kind: 'extension', key: manifest.id, source, folder, manifest };
  } catch (error) {
    const reason =
      error instanceof ManifestError
        ? error.message
        : `${MANIFEST} can't be read: ${codeOf(error)}`;
    return { kind: 'fault', key: basename(folder), source, reason, manifest: null };
  }
}

/** The first of an id wins; the others are listed under `<id>@<source>`. */
function withoutDoubles(all: readonly Found[]): readonly Found[] {
  const listed = new Map<string, Found>();
  for (const found of all) {
    const first = listed.get(found.key);
    if (first === undefined) {
      listed.set(found.key, found);
      continue;
    }
    const { source } = found;
    let key = `${found.key}@${source}`;
    for (let n = 2; listed.has(key); n += 1) key = `${found.key}@${source}-${n}`;
    const reason =
      found.kind === 'fault'
        ? found.reason
        : `the id ${found.key} is had by one from ${first.source}`;
    listed.set(key, { kind: 'fault', key, source, reason, manifest: found.manifest });
  }
  return [...listed.values()];
}

/** The folder of the built-in extensions, beside this one. */
export const builtInFolder = dirname(import.meta.dirname);
