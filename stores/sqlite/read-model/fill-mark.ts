import { readFileSync } from 'node:fs';
import type { StreamShare } from '../../../domain/stream-share.ts';

/**
 * What stands in the checkpoint of a file that is being filled in bulk. It tells one start of the machine from the next:
 * what was written without waiting for the disk survives the end of a process, not that of the machine.
 *
 * A file with one share of a generation says so too, and so does that which takes the others in, until it has: whoever
 * fills a generation whole, an older release too, would take what is there for all of it.
 */
export function fillMark(share: StreamShare | null): string {
  if (share === null) return startOfMachine;
  return `${startOfMachine} share ${String(share.index)} of ${String(share.of)}`;
}

/** Whether a fill that was left can go on: the system says whether the machine was started anew since. */
export function canGoOn(): boolean {
  return startOfMachine !== '';
}

/** Empty where the system does not say. */
const startOfMachine = bootId();

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Not Linux: an unfinished fill can't be told from a torn one, and is begun anew.
    return '';
  }
}
