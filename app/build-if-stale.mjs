import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/**
 * Builds the service if `dist/` is stale; ends this process if that fails. The build is a separate process, so that a
 * service does not keep its memory.
 */
export function buildIfStale() {
  const build = join(import.meta.dirname, 'build.mjs');
  const { status } = spawnSync(process.execPath, [build, '--if-stale'], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
