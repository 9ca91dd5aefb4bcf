import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { capabilities } from '../contract.ts';
import type { DiscoveredExtension } from './discovery.ts';
import { MANIFEST_FILE, ManifestError, parseManifest, readManifest, reasonOf } from './manifest.ts';

/** Reading one package at a time would be slow while the event loop is busy, as with a large log. */
const MAX_CONCURRENT_READS = 64;

/** The npm packages whose plugins may be loaded. */
export type AllowedPlugins = readonly string[] | 'all';

/** A package in a folder `node_modules`. */
interface InstalledPackage {
  readonly folder: string;
  /** The name under which it is installed; its package.json could claim another. */
  readonly name: string;
}

/** The fields of a package.json with plugins that are read here. */
interface PackageJson {
  readonly name?: unknown;
  readonly version?: unknown;
  readonly description?: unknown;
  readonly svc: { readonly plugins: Readonly<Record<string, unknown>> };
}

/**
 * Finds installed npm packages whose package.json has `"svc": {"plugins": {"<id>": "<module>"}}`. An `extension.json`
 * beside the module or the package.json holds the other fields. Without one, the package's name and version apply and
 * all capabilities are requested. A plugin of a package that is not allowed is listed as broken, after all others, so
 * that it takes no id from them. Never rejects.
 * @param folders whose `node_modules` are searched, without descending further
 */
export async function findPlugins(
  folders: readonly string[],
  allowed: AllowedPlugins,
): Promise<readonly DiscoveredExtension[]> {
  const modules = [...new Set(folders)].map((folder) => packagesIn(join(folder, 'node_modules')));
  const packages = (await Promise.all(modules)).flat();
  const isAllowed = ({ name }: InstalledPackage): boolean =>
    allowed === 'all' || allowed.includes(name);
  const pluginsIn = async (some: readonly InstalledPackage[], readPlugins: typeof pluginsOf) =>
    (await mapInBatches(some, MAX_CONCURRENT_READS, readPlugins)).flat();
  return [
    ...(await pluginsIn(packages.filter(isAllowed), pluginsOf)),
    ...(await pluginsIn(
      packages.filter((each) => !isAllowed(each)),
      refusedPluginsOf,
    )),
  ];
}

async function packagesIn(modules: string): Promise<readonly InstalledPackage[]> {
  const names = await readdir(modules).catch(() => []);
  const packages = await Promise.all(
    names
      .filter((name) => !name.startsWith('.'))
      .sort()
      .map(async (name) => {
        const path = join(modules, name);
        if (!name.startsWith('@')) return [{ folder: path, name }];
        const scoped = await readdir(path).catch(() => []);
        return scoped
          .sort()
          .map((inner) => ({ folder: join(path, inner), name: `${name}/${inner}` }));
      }),
  );
  return packages.flat();
}

async function pluginsOf({ folder }: InstalledPackage): Promise<readonly DiscoveredExtension[]> {
  const packageJson = await packageJsonIn(folder);
  if (packageJson === null) return [];
  return Promise.all(
    Object.entries(packageJson.svc.plugins).map(([id, module]) =>
      pluginOf(folder, packageJson, id, module),
    ),
  );
}

async function refusedPluginsOf({
  folder,
  name,
}: InstalledPackage): Promise<readonly DiscoveredExtension[]> {
  const packageJson = await packageJsonIn(folder);
  const remedy = 'which SVC_EXT_PLUGINS does not name; add it there to load its code';
  const reason = `it is a plugin of the npm package ${name}, ${remedy}`;
  return Object.keys(packageJson?.svc.plugins ?? {}).map((id) => {
    return { kind: 'broken', key: id, source: 'entry_point', reason, manifest: null };
  });
}

/** The package.json of a package with plugins; null for any other. */
async function packageJsonIn(folder: string): Promise<PackageJson | null> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '');
  // Most packages have no plugins, and parsing all of them is slow.
  if (!text.includes('"plugins"') || !text.includes('"svc"')) return null;
  try {
    const packageJson = JSON.parse(text) as Partial<PackageJson>;
    const plugins = packageJson.svc?.plugins;
    return typeof plugins === 'object' && plugins !== null ? (packageJson as PackageJson) : null;
  } catch {
    return null;
  }
}

async function pluginOf(
  folder: string,
  packageJson: PackageJson,
  id: string,
  module: unknown,
): Promise<DiscoveredExtension> {
  const source = 'entry_point';
  try {
    if (typeof module !== 'string') throw new ManifestError('svc.plugins: module must be a string');
    const path = module.replace(/^\.\//, '');
    const beside = join(folder, dirname(path), MANIFEST_FILE);
    const file = existsSync(beside) ? beside : join(folder, MANIFEST_FILE);
    const own = existsSync(file) ? parseManifest(await readFile(file, 'utf8')) : null;
    const { name, version, description = '' } = packageJson;
    const defaults = { name, version, description, capabilities: [...capabilities] };
    const fields = typeof own === 'object' && own !== null ? own : defaults;
    const manifest = readManifest({ ...fields, id, module: path });
    return { kind: 'valid', key: id, source, folder, manifest };
  } catch (error) {
    return { kind: 'broken', key: id, source, reason: reasonOf(error), manifest: null };
  }
}
