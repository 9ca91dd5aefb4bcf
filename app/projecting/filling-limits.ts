import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Threads that fill a view at most: what comes after the shares, taking them in and making indexes, is done by one. */
const MOST_THREADS = 4;

/** What a process has to be able to take for each of them, with all else that it does. */
const MEMORY_FOR_ONE = 2 ** 30;

/** The quota of a container: microseconds of processors in a period, and the period's length; `max`: no limit. */
const QUOTA = '/sys/fs/cgroup/cpu.max';

/**
 * How many threads are to fill a view.
 * @param memory bytes that the process may take; 0 or undefined where that is not known
 */
export function threadsFor(processors: number, memory: number | undefined): number {
  const forMemory = memory === undefined || memory === 0 ? MOST_THREADS : memory / MEMORY_FOR_ONE;
  return Math.max(1, Math.floor(Math.min(MOST_THREADS, processors, forMemory)));
}

/**
 * Processors that this process may keep busy. Node does not look at a container's quota: a thread that takes what is
 * beyond it stops all of them until the next period, whatever its priority.
 *
 * @param quota what the system says of it; default: what it says now, on Linux
 */
export function usableProcessors(quota = quotaOfContainer()): number {
  const [most = '', period = ''] = quota.trim().split(/\s+/);
  const processors = Number(most) / Number(period);
  return Number.isFinite(processors) && processors > 0
    ? Math.min(processors, availableParallelism())
    : availableParallelism();
}

function quotaOfContainer(): string {
  try {
    return readFileSync(QUOTA, 'utf8');
  } catch {
    // Not Linux, an older kernel, or no container: then there is no quota that could be known.
    return '';
  }
}
