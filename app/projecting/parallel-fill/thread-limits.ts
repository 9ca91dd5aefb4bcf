import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The most threads that fill a view. Only one of them merges the shares and creates the indexes. */
const MAX_THREADS = 4;

/** Memory that the process must be able to use per thread, for everything that it does. */
const BYTES_PER_THREAD = 2 ** 30;

/** A container's CPU quota: microseconds per period, and the period's length; `max`: unlimited. */
const QUOTA_FILE = '/sys/fs/cgroup/cpu.max';

/**
 * The number of threads that fill a view.
 * @param memory bytes that the process may use; 0 or undefined if unknown
 */
export function threadsFor(processors: number, memory: number | undefined): number {
  const forMemory = memory === undefined || memory === 0 ? MAX_THREADS : memory / BYTES_PER_THREAD;
  return Math.max(1, Math.floor(Math.min(MAX_THREADS, processors, forMemory)));
}

/**
 * Processors that this process may keep busy. Node ignores a container's quota: a thread that exceeds it stops all
 * threads until the next period, whatever its priority.
 *
 * @param quota as the system reports it; default: read from the system (Linux)
 */
export function usableProcessors(quota = readQuota()): number {
  const [most = '', period = ''] = quota.trim().split(/\s+/);
  const processors = Number(most) / Number(period);
  return Number.isFinite(processors) && processors > 0
    ? Math.min(processors, availableParallelism())
    : availableParallelism();
}

function readQuota(): string {
  try {
    return readFileSync(QUOTA_FILE, 'utf8');
  } catch {
    // Not Linux, an older kernel, or no container: no quota is known.
    return '';
  }
}
