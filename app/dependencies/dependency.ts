import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A package of the lock file. */
export interface Dependency {
  /** Its folder, as the lock file has it: `node_modules/express`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** SPDX; empty if the package names none. */
  readonly licence: string;
  /** Whether `npm ci --omit=dev` installs it. */
  readonly isProduction: boolean;
  /** Whether package.json names it. */
  readonly isDirect: boolean;
  /** Whether it has an install script. */
  readonly hasInstallScript: boolean;
  /** Hash of its archive; null for none. */
  readonly integrity: string | null;
  /** Facts from its own package.json; null if it is not installed, for example because it is for another platform. */
  readonly installed: InstalledFacts | null;
}

/** The facts of an installed package's package.json. */
export interface InstalledFacts {
  readonly version: string;
  readonly licence: string;
  readonly hasInstallScript: boolean;
}

interface LockEntry {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly integrity?: string;
}

interface PackageFile {
  readonly version?: string;
  readonly license?: string | { readonly type?: string };
  readonly licenses?: readonly { readonly type?: string }[];
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly allowScripts?: Readonly<Record<string, boolean>>;
}

/** The dependencies of a project. */
export interface Dependencies {
  readonly all: readonly Dependency[];
  /** Whether npm may run a package's install scripts, by its name. */
  readonly allowScripts: Readonly<Record<string, boolean>>;
}

/**
 * Reads the lock file of a project and the installed packages.
 * @throws the file system's error without package.json or package-lock.json
 */
export function readDependencies(project: string): Dependencies {
  const own = readJson<PackageFile>(join(project, 'package.json'));
  const lock = readJson<{ readonly packages: Readonly<Record<string, LockEntry>> }>(
    join(project, 'package-lock.json'),
  );
  const direct = new Set(Object.keys({ ...own.dependencies, ...own.devDependencies }));
  const all = Object.entries(lock.packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]): Dependency => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      return {
        path,
        name,
        version: entry.version ?? '',
        licence: entry.license ?? '',
        isProduction: entry.dev !== true,
        isDirect: direct.has(name) && path === `node_modules/${name}`,
        hasInstallScript: entry.hasInstallScript === true,
        integrity: entry.integrity ?? null,
        installed: installedAt(join(project, path, 'package.json')),
      };
    });
  return { all, allowScripts: own.allowScripts ?? {} };
}

function installedAt(file: string): InstalledFacts | null {
  if (!existsSync(file)) return null;
  const { version = '', license, licenses, scripts = {} } = readJson<PackageFile>(file);
  const named = typeof license === 'string' ? license : license?.type;
  const older = licenses?.map(({ type = '' }) => type).join(' OR ');
  return {
    version,
    licence: named ?? older ?? '',
    hasInstallScript: ['preinstall', 'install', 'postinstall'].some((name) => name in scripts),
  };
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}
