import { readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { projectRoot } from '../test/support/project-root.ts';

/** On what, and with what, was measured. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
  readonly sqlite: string;
  /** The service's own, as package.json has it. */
  readonly version: string;
  /** Of the packages that it is made with. */
  readonly packages: Readonly<Record<string, string>>;
}

/** The machine and the versions. */
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

/** Processes that ran or waited to run, over the last minute. */
export function load(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100;
}

function sqliteVersion(): string {
  const database = new DatabaseSync(':memory:');
  try {
    const row: unknown = database.prepare('SELECT sqlite_version() AS version').get();
    return typeof row === 'object' && row !== null && 'version' in row ? String(row.version) : '';
  } finally {
    database.close();
  }
}
