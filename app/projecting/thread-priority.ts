import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Log } from '../../observability/telemetry.ts';

/**
 * Lets the other threads of the machine go before this one when the processors are scarce (Linux, where a niceness
 * belongs to a thread; elsewhere nothing happens).
 *
 * @param niceness 0 to 19; each step is about a tenth less of a contended processor
 */
export function yieldToOthers(niceness: number, log: Log): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    if (Number.isInteger(thread) && thread !== process.pid) setPriority(thread, niceness);
  } catch (error) {
    log.debug('this system gives threads no priority', { error });
  }
}
