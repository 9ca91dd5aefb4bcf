import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { capabilities } from '../contract.ts';
import type { DiscoveredExtension } from './discovery.ts';
import { MANIFEST_FILE, ManifestError, parseManifest, readManifest, reasonOf } from './manifest.ts';

/** Reading one package at a time would be slow while the event loop is busy, as with a large log. */
const MAX_CONCURRENT_READS = 64;

/** The fields of a package.json that are read here. */
interface PackageJson {
  readonly name?: unknown;
  readonly version?: unknown;
  readonly description?: unknown;
  readonly svc?: { readonly plugins?: unknown } | null;
}

/**
 * Finds installed npm packages whose package.json has `"svc": {"plugins": {"<id>": "<module>"}}`. An `extension.json`
 * beside the module or the package.json holds the other fields. Without one, the package's name and version apply and
 * all capabilities are requested. Never rejects.
 * @param folders whose `node_modules` are searched, without descending further
 */
export async function findPlugins(
  folders: readonly string[],
): Promise<readonly DiscoveredExtension[]> {
  const found: DiscoveredExtension[] = [];
  for (const folder of new Set(folders)) {
    const packages = await packagesIn(join(folder, 'node_modules'));
    found.push(...(await mapInBatches(packages, MAX_CONCURRENT_READS, pluginsOf)).flat());
  }
  return found;
}

async function packagesIn(modules: string): Promise<readonly string[]> {
  const names = await readdir(modules).catch(() => []);
  const packages = await Promise.all(
    names
      .filter((name) => !name.startsWith('.'))
      .sort()
      .map(async (name) => {
        const path = join(modules, name);
        if (!name.startsWith('@')) return [path];
        const scoped = await readdir(path).catch(() => []);
        return scoped.sort().map((inner) => join(path, inner));
      }),
  );
  return packages.flat();
}

async function pluginsOf(folder: string): Promise<readonly DiscoveredExtension[]> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '');
  // Most packages have no plugins, and parsing all of them is slow.
  if (!text.includes('"plugins"') || !text.includes('"svc"')) return [];
  let packageJson: PackageJson;
  try {
    packageJson = JSON.parse(text) as PackageJson;
  } catch {
    return [];
  }
  const plugins = packageJson.svc?.plugins;
  if (typeof plugins !== 'object' || plugins === null) return [];
  return Promise.all(
    Object.entries(plugins).map(([id, module]) => pluginOf(folder, packageJson, id, module)),
  );
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
