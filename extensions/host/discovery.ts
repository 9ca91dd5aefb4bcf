import { readFile, readdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import {
  MANIFEST_FILE,
  errorCodeOf,
  parseManifest,
  readManifest,
  reasonOf,
  type Manifest,
} from './manifest.ts';
import { findPlugins, type AllowedPlugins } from './plugins.ts';

/** Sources of extensions. If an id is found twice, the earlier source wins. */
export const sources = ['builtin', 'env_dir', 'entry_point'] as const;
export type Source = (typeof sources)[number];

export type DiscoveredExtension = ValidExtension | BrokenExtension;

export interface ValidExtension {
  readonly kind: 'valid';
  /** Key in the status. */
  readonly key: string;
  readonly source: Source;
  /** Absolute path. */
  readonly folder: string;
  readonly manifest: Manifest;
}

export interface BrokenExtension {
  readonly kind: 'broken';
  readonly key: string;
  readonly source: Source;
  /** For people, without paths. */
  readonly reason: string;
  readonly manifest: Manifest | null;
}

export interface SearchPaths {
  /** Folder of the built-in extensions. */
  readonly builtIn: string;
  /** `SVC_EXT_PATHS`: each is an extension's folder or a folder of such folders. */
  readonly paths: readonly string[];
  /** Folders whose `node_modules` may contain packages with `svc.plugins`. */
  readonly packagesOf: readonly string[];
  /** `SVC_EXT_PLUGINS`: the packages whose plugins may be loaded. */
  readonly allowedPlugins: AllowedPlugins;
}

/**
 * Finds extensions. Never rejects: an unreadable one is listed as broken.
 * @returns in the order of {@link sources}, with unique keys
 */
export async function discover(searched: SearchPaths): Promise<readonly DiscoveredExtension[]> {
  const builtIn = await findIn(searched.builtIn, 'builtin');
  const fromPaths = await Promise.all(
    searched.paths.map((path) => findIn(resolve(path), 'env_dir')),
  );
  const plugins = await findPlugins(searched.packagesOf, searched.allowedPlugins);
  return withUniqueKeys([...builtIn, ...fromPaths.flat(), ...plugins]);
}

/** A folder with a manifest is an extension; any other is a folder of extensions. */
async function findIn(folder: string, source: Source): Promise<readonly DiscoveredExtension[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const isExtension = entries.some(({ name }) => name === MANIFEST_FILE);
    if (isExtension) return [await readExtension(folder, source)];
    const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
    const names = folders.map(({ name }) => name).filter((name) => !name.startsWith('.'));
    const found = await Promise.all(
      names.sort().map(async (name) => {
        const inside = join(folder, name);
        const has = (await readdir(inside).catch((): string[] => [])).includes(MANIFEST_FILE);
        return has ? [await readExtension(inside, source)] : [];
      }),
    );
    return found.flat();
  } catch (error) {
    const reason = `the folder cannot be read: ${errorCodeOf(error)}`;
    return [{ kind: 'broken', key: basename(folder), source, reason, manifest: null }];
  }
}

async function readExtension(folder: string, source: Source): Promise<DiscoveredExtension> {
  try {
    const text = await readFile(join(folder, MANIFEST_FILE), 'utf8');
    const manifest = readManifest(parseManifest(text));
    return { kind: 'valid', key: manifest.id, source, folder, manifest };
  } catch (error) {
    const key = basename(folder);
    return { kind: 'broken', key, source, reason: reasonOf(error), manifest: null };
  }
}

/** Keeps the first of each id; the others are listed as `<id>@<source>`. */
function withUniqueKeys(all: readonly DiscoveredExtension[]): readonly DiscoveredExtension[] {
  const listed = new Map<string, DiscoveredExtension>();
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
      found.kind === 'broken'
        ? found.reason
        : `the id ${found.key} is already used by an extension from ${first.source}`;
    listed.set(key, { kind: 'broken', key, source, reason, manifest: found.manifest });
  }
  return [...listed.values()];
}

/** Folder of the built-in extensions: the parent of this one. */
export const BUILT_IN_FOLDER = dirname(import.meta.dirname);
