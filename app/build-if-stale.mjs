import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/**
 * Compiles the service where `dist/` is stale, and ends this process with the compiler's exit code where that
 * fails. The build is a process of its own, so that a service does not keep its memory.
 */
export function buildIfStale() {
  const build = join(import.meta.dirname, 'build.mjs');
  const { status } = spawnSync(process.execPath, [build, '--if-stale'], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
