import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { Log } from '../../observability/telemetry.ts';
import type { Priority } from './fill-priority.ts';

/**
 * The priority of the calling thread. Only on Linux, where each thread has a niceness; elsewhere nothing happens.
 * Restoring it needs a right (CAP_SYS_NICE, or a limit: setpriority(2)); without that it stays lowered.
 *
 * @param niceness 0 to 19; each step is about a tenth less of a contended processor
 */
export function threadPriority(niceness: number, log: Log): Priority {
  const thread = linuxThreadId(log);
  if (thread === null) return { lower: () => undefined, restore: () => undefined };
  const initial = getPriority(thread);
  const set = (value: number): void => {
    try {
      setPriority(thread, value);
    } catch (error) {
      log.debug('could not set the priority of a thread', { error, niceness: value });
    }
  };
  return { lower: () => set(Math.max(initial, niceness)), restore: () => set(initial) };
}

/** null on other systems, and for the main thread, whose id is the process's. */
function linuxThreadId(log: Log): number | null {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    return Number.isInteger(thread) && thread !== process.pid ? thread : null;
  } catch (error) {
    log.debug('this system has no thread priorities', { error });
    return null;
  }
}
