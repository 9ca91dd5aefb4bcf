import { hash } from 'node:crypto';
import type { Instant } from './clock.ts';

/** Namespace of every id that is derived from names (made once at random). */
const NAMESPACE = '6f1d3c9a-27b4-4e83-9a55-0c8e2f7b41d6';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a text is a UUID of any version. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** A UUID made of a name: the same name gives the same id, always (RFC 9562, version 5). */
export function nameBasedId(...parts: readonly string[]): string {
  const digest = hash('sha1', `${NAMESPACE}/${parts.join('/')}`, 'hex');
  const variant = ((Number.parseInt(digest[16] ?? '0', 16) & 0x3) | 0x8).toString(16);
  return (
    `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}` +
    `-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`
  );
}

let lastTime = 0;
let lastCount = 0;

/**
 * A new id that sorts by time (RFC 9562, version 7). Within a millisecond of one process they ascend too:
 * the 12 bits behind the time count up from a random start.
 */
export function newId(now: Instant): string {
  const random = globalThis.crypto.getRandomValues(new Uint8Array(10));
  if (now > lastTime) {
    lastTime = now;
    lastCount = (((random[0] ?? 0) << 3) | ((random[1] ?? 0) & 0x7)) & 0x7ff;
  } else if (++lastCount > 0xfff) {
    lastTime += 1;
    lastCount = 0;
  }
  const time = lastTime.toString(16).padStart(12, '0');
  const count = lastCount.toString(16).padStart(3, '0');
  const hex = (from: number, to: number): string =>
    Array.from(random.subarray(from, to), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const variant = (((random[2] ?? 0) & 0x3f) | 0x80).toString(16).padStart(2, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${variant}${hex(3, 4)}-${hex(4, 10)}`;
}

/** Id of an event: a command that is repeated appends the same events again. */
export function eventId(commandId: string, stream: string, index: number): string {
  return nameBasedId('event', commandId, stream, String(index));
}

/** Id of the run that a task's fire at a nominal time becomes. */
export function scheduledRunId(taskId: string, nominal: string): string {
  return nameBasedId('run', taskId, 'schedule', nominal);
}

/** Id of the run that an event makes of a task. */
export function triggeredRunId(taskId: string, publishedEventId: string): string {
  return nameBasedId('run', taskId, 'event', publishedEventId);
}

/** Id of the run that a person's (or a tool's) command makes of a task. */
export function manualRunId(taskId: string, commandId: string): string {
  return nameBasedId('run', taskId, 'manual', commandId);
}
