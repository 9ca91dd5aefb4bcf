import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { Log } from '../../observability/telemetry.ts';
import type { Priority } from './giving-way.ts';

/**
 * The priority of the thread that calls this: while it gives way, the other threads of the machine go before it when
 * the processors are scarce. On Linux, where a niceness belongs to a thread; elsewhere nothing happens.
 *
 * To take a priority back needs a right (CAP_SYS_NICE, or a limit: setpriority(2)). Without it the thread gives way
 * from the first time on.
 *
 * @param niceness of 0 to 19; each step is about a tenth less of a contended processor
 */
export function threadPriority(niceness: number, log: Log): Priority {
  const thread = threadOfLinux(log);
  if (thread === null) return { giveWay: () => undefined, takeBack: () => undefined };
  const own = getPriority(thread);
  const set = (value: number): void => {
    try {
      setPriority(thread, value);
    } catch (error) {
      log.debug('the priority of a thread can not be set', { error, niceness: value });
    }
  };
  return { giveWay: () => set(Math.max(own, niceness)), takeBack: () => set(own) };
}

/** Its number; null where threads have no niceness, and for the main thread, by whose number the process goes. */
function threadOfLinux(log: Log): number | null {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    return Number.isInteger(thread) && thread !== process.pid ? thread : null;
  } catch (error) {
    log.debug('this system gives threads no priority', { error });
    return null;
  }
}
