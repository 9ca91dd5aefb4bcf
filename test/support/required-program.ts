import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { leaveOut } from './left-out.ts';

/** A program from outside npm that tests run. */
interface Program {
  /** The names of its executable, the preferred one first. Each is looked for in every folder of `PATH`. */
  readonly names: readonly string[];
  /** Arguments with which a usable copy exits with code 0. Without them, a copy is usable if it is executable. */
  readonly probe?: readonly string[];
  /** The Debian package that contains it. `.ci/run` installs it if the program is missing. */
  readonly debianPackage: string;
  /** Its use in the tests, for the line about skipped tests. */
  readonly purpose: string;
}

const programs = {
  chromium: {
    // The shell has no window to draw for, and takes a fifth of the processor time.
    names: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
    debianPackage: 'chromium-headless-shell',
    purpose: 'the page in a browser',
  },
  prometheus: {
    names: ['prometheus'],
    debianPackage: 'prometheus',
    purpose: 'alerts in a running Prometheus',
  },
  promtool: {
    names: ['promtool'],
    debianPackage: 'prometheus',
    purpose: 'alert rules as promtool reads them',
  },
  'python3-dateutil': {
    names: ['python3'],
    probe: ['-c', 'import dateutil.rrule'],
    debianPackage: 'python3-dateutil',
    purpose: 'schedules compared with dateutil',
  },
  'python3-croniter': {
    names: ['python3'],
    probe: ['-c', 'import croniter'],
    debianPackage: 'python3-croniter',
    purpose: 'schedules compared with croniter',
  },
  'python3-venv': {
    names: ['python3'],
    probe: ['-c', 'import sys, ensurepip, venv; assert sys.version_info >= (3, 9)'],
    debianPackage: 'python3-venv',
    purpose: 'the Python SDK',
  },
  curl: {
    names: ['curl'],
    probe: ['--version'],
    debianPackage: 'curl',
    purpose: 'the demo of workers',
  },
  prlimit: {
    names: ['prlimit'],
    probe: ['--version'],
    debianPackage: 'util-linux',
    purpose: 'a service that may open few files or write little',
  },
  setpriv: {
    names: ['setpriv'],
    probe: ['--version'],
    debianPackage: 'util-linux',
    purpose: 'a service without the right to write',
  },
} as const satisfies Record<string, Program>;

/** The programs of the tests; for a Python module, the interpreter that has it. */
export type ProgramName = keyof typeof programs;

export const programNames = Object.keys(programs) as readonly ProgramName[];

/**
 * Returns the path of a program for a test. If the program is missing, the test is skipped, and the
 * closing lines of the run say so. With `CI=true` the test fails instead. Call it in a test, or in
 * the `before` of a `describe`:
 *
 *     before(function () {
 *       promtool = requiredProgram(this, 'promtool');
 *     });
 */
export function requiredProgram(context: Mocha.Context, name: ProgramName): string {
  const { purpose, debianPackage } = programs[name];
  return (
    findProgram(name) ??
    leaveOut(context, `${purpose}: ${name} is missing (Debian: apt-get install ${debianPackage})`)
  );
}

const found = new Map<string, string | undefined>();

/** The path of a program in `PATH`; undefined without a usable copy. */
export function findProgram(name: ProgramName): string | undefined {
  const path = process.env['PATH'] ?? '';
  const key = `${name} in ${path}`;
  if (!found.has(key)) found.set(key, search(programs[name], path));
  return found.get(key);
}

/** The Debian packages of the missing programs, without repetitions. */
export function missingPackages(): string[] {
  const missing = programNames.filter((name) => findProgram(name) === undefined);
  return [...new Set(missing.map((name) => programs[name].debianPackage))];
}

function search({ names, probe }: Program, path: string): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((file) => isExecutable(file) && passes(file, probe));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const passes = (file: string, probe?: readonly string[]): boolean =>
  probe === undefined || spawnSync(file, probe, { stdio: 'ignore' }).status === 0;
