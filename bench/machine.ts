import { readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { sqliteVersion } from '../stores/sqlite/database.ts';
import { projectRoot } from '../test/support/project-root.ts';

/** The measured machine and versions. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
  readonly sqlite: string;
  /** The service's version. */
  readonly version: string;
  /** The versions of its dependencies. */
  readonly packages: Readonly<Record<string, string>>;
}

export function describeMachine(): Machine {
  const manifest = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as {
    readonly version: string;
    readonly dependencies: Readonly<Record<string, string>>;
  };
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 28) / 4,
    node: process.version,
    sqlite: sqliteVersion(),
    version: manifest.version,
    packages: manifest.dependencies,
  };
}

/** The load average of the last minute. */
export function load(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100;
}
