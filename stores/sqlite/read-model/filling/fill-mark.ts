import { readFileSync } from 'node:fs';
import type { StreamShare } from '../../../../domain/stream-share.ts';

/**
 * The mark of a running bulk fill in a file's checkpoint. It names the boot of the machine: unsynced writes survive the
 * end of a process, but not that of the machine. A file with one share of a generation names its share too, so that no
 * writer takes it for the whole generation.
 */
export function fillMark(share: StreamShare | null): string {
  if (share === null) return boot;
  return `${boot} share ${String(share.index)} of ${String(share.of)}`;
}

/** Whether an interrupted fill can be resumed, because reboots can be told apart. */
export function canResume(): boolean {
  return boot !== '';
}

/** Empty where the system does not tell. */
const boot = bootId();

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Not Linux: an interrupted fill may be torn, so it starts over.
    return '';
  }
}
