import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../support/project-root.ts';

/** Maximum duration of an npm or package command, in milliseconds. */
const LIMIT_MS = 60_000;

/** The result of a command. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A project that contains only the installed package. */
export interface InstalledPackage {
  /** The folder of the project. */
  readonly folder: string;
  /** The files of the tarball, without their common folder `package/`. */
  readonly files: readonly string[];
  /** The PATH of a shell, with the package's commands first. */
  readonly path: string;
  /** Runs a program in the project. */
  run(program: string, words: readonly string[], settings?: NodeJS.ProcessEnv): Promise<Outcome>;
}

/**
 * Packs this project and installs the tarball in an empty one, without a registry: npm unpacks the
 * tarball and links its commands. Only the packages that the lock file has for production are
 * beside it. A file that `files` omits, or a package that is only a development dependency, is
 * therefore missing.
 * @param folder an empty one
 */
export async function installPackage(folder: string): Promise<InstalledPackage> {
  const { PATH = '' } = process.env;
  const path = [join(folder, 'node_modules/.bin'), PATH].join(delimiter);
  const run = (program: string, words: readonly string[], settings: NodeJS.ProcessEnv = {}) =>
    outcomeOf(program, words, folder, { PATH: path, HOME: folder, ...settings });
  const packed = await npm(
    ['pack', '--json', '--foreground-scripts=false', '--pack-destination', folder],
    projectRoot,
  );
  const [tarball] = JSON.parse(packed) as readonly {
    readonly filename: string;
    readonly files: readonly { readonly path: string }[];
  }[];
  if (tarball === undefined) throw new Error(`npm pack named no tarball: ${packed}`);
  await writeFile(join(folder, 'package.json'), '{"name":"user","type":"module"}\n');
  const own = join(folder, 'node_modules/task-scheduling-service');
  await mkdir(own, { recursive: true });
  const unpacked = ['-xzf', join(folder, tarball.filename), '-C', own, '--strip-components=1'];
  const { code, err } = await run('tar', unpacked);
  if (code !== 0) throw new Error(`the tarball can't be unpacked: ${err}`);
  await linkProductionPackages(join(folder, 'node_modules'));
  await npm(['rebuild', '--ignore-scripts', 'task-scheduling-service'], folder);
  return { folder, files: tarball.files.map((file) => file.path), path, run };
}

/** Links the packages of a production install into a folder. */
async function linkProductionPackages(modules: string): Promise<void> {
  const lock = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  const names = Object.entries(lock.packages)
    .filter(([, { dev }]) => dev !== true)
    .flatMap(([path]) => /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1] ?? []);
  for (const name of names) {
    const target = join(projectRoot, 'node_modules', name);
    // Binaries of other systems are in the lock file but not installed.
    if (!existsSync(target)) continue;
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(target, join(modules, name));
  }
}

async function npm(words: readonly string[], folder: string): Promise<string> {
  const { code, out, err } = await outcomeOf('npm', words, folder, process.env);
  if (code !== 0) throw new Error(`npm ${words.join(' ')} ended with ${code}: ${err}`);
  return out;
}

function outcomeOf(
  program: string,
  words: readonly string[],
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<Outcome> {
  const options = { cwd: folder, env, timeout: LIMIT_MS, killSignal: 'SIGKILL' } as const;
  return promisify(execFile)(program, words, options).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
    (fault: { readonly code: number; readonly stdout: string; readonly stderr: string }) => ({
      code: fault.code,
      out: fault.stdout,
      err: fault.stderr,
    }),
  );
}
