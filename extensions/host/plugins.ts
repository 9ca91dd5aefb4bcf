import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sideBySide } from '../../domain/side-by-side.ts';
import { capabilities } from '../contract.ts';
import type { Found } from './discovery.ts';
import { MANIFEST, ManifestError, codeOf, parseManifest, readManifest } from './manifest.ts';

/**
 * Packages that are read at a time. One after the other, each part of each would wait for a turn of an event loop that
 * may have a large log to read.
 */
const READ_AT_ONCE = 64;

/** What of a package.json counts here. */
interface Package {
  readonly name?: unknown;
  readonly version?: unknown;
  readonly description?: unknown;
  readonly svc?: { readonly plugins?: unknown } | null;
}

/**
 * Installed npm packages whose package.json has `"svc": {"plugins": {"<id>": "<module>"}}`. Where the module's
 * folder, or the package's, has an `extension.json`, that says the rest; else it goes by the package's name and
 * version, and asks for all capabilities. Never rejects.
 *
 * @param folders whose `node_modules` are looked through, without going deeper
 */
export async function findPlugins(folders: readonly string[]): Promise<readonly Found[]> {
  const found: Found[] = [];
  for (const folder of new Set(folders)) {
    const packages = await packagesIn(join(folder, 'node_modules'));
    found.push(...(await sideBySide(packages, READ_AT_ONCE, pluginsOf)).flat());
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

async function pluginsOf(folder: string): Promise<readonly Found[]> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '');
  // Most packages have none, and parsing them all takes a while.
  if (!text.includes('"plugins"') || !text.includes('"svc"')) return [];
  let about: Package;
  try {
    about = JSON.parse(text) as Package;
  } catch {
    return [];
  }
  const plugins = about.svc?.plugins;
  if (typeof plugins !== 'object' || plugins === null) return [];
  return Promise.all(
    Object.entries(plugins).map(([id, module]) => pluginOf(folder, about, id, module)),
  );
}

async function pluginOf(
  folder: string,
  about: Package,
  id: string,
  module: unknown,
): Promise<Found> {
  const source = 'entry_point';
  try {
    if (typeof module !== 'string') throw new ManifestError('svc.plugins: a module is a text');
    const path = module.replace(/^\.\//, '');
    const beside = join(folder, dirname(path), MANIFEST);
    const file = existsSync(beside) ? beside : join(folder, MANIFEST);
    const own = existsSync(file) ? parseManifest(await readFile(file, 'utf8')) : undefined;
    const { name, version, description = '' } = about;
    const general = { name, version, description, capabilities: [...capabilities] };
    const said = typeof own === 'object' && own !== null ? own : general;
    const manifest = readManifest({ ...said, id, module: path });
    return { kind: 'extension', key: id, source, folder, manifest };
  } catch (error) {
    const told = error instanceof ManifestError;
    const reason = told ? error.message : `${MANIFEST} can't be read: ${codeOf(error)}`;
    return { kind: 'fault', key: id, source, reason, manifest: null };
  }
}
