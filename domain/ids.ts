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
  const digest = digestOf(parts.join('/'));
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${endOf(digest)}`;
}

/** Hexadecimal. */
function digestOf(name: string): string {
  return hash('sha1', `${NAMESPACE}/${name}`, 'hex');
}

/** The part of an id that a digest makes, from behind the version's digit. */
function endOf(digest: string): string {
  const variant = VARIANTS[Number.parseInt(digest.charAt(16), 16) & 0x3] ?? '';
  return `${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

/** Digits whose upper two bits say that an id is of RFC 9562. */
const VARIANTS = ['8', '9', 'a', 'b'];

/** Asking for randomness costs more than the rest of an id, so it is asked for many at a time. */
const POOL_IDS = 512;
const RANDOM_BYTES = 10;
const pool = new Uint8Array(POOL_IDS * RANDOM_BYTES);
let poolUsed = POOL_IDS;
const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

let lastTime = 0;
let lastCount = 0;
let timeText = '00000000-0000';

/**
 * A new id that sorts by time (RFC 9562, version 7). Within a millisecond of one process they ascend too:
 * the 12 bits behind the time count up from a random start in the lower half.
 */
export function newId(now: Instant): string {
  if (poolUsed === POOL_IDS) {
    globalThis.crypto.getRandomValues(pool);
    poolUsed = 0;
  }
  const at = RANDOM_BYTES * poolUsed++;
  const byte = (index: number): string => hexOfByte[pool[at + index] ?? 0] ?? '';
  if (now > lastTime) {
    setTime(now);
    lastCount = (((pool[at] ?? 0) << 3) | ((pool[at + 1] ?? 0) & 0x7)) & 0x7ff;
  } else if (++lastCount > 0xfff) {
    setTime(lastTime + 1);
    lastCount = 0;
  }
  const count = lastCount.toString(16).padStart(3, '0');
  const variant = hexOfByte[((pool[at + 2] ?? 0) & 0x3f) | 0x80] ?? '';
  const tail = byte(4) + byte(5) + byte(6) + byte(7) + byte(8) + byte(9);
  return `${timeText}-7${count}-${variant}${byte(3)}-${tail}`;
}

function setTime(time: number): void {
  lastTime = time;
  const text = time.toString(16).padStart(12, '0');
  timeText = `${text.slice(0, 8)}-${text.slice(8)}`;
}

/**
 * An id made of a moment and a name: the same two give the same id, and ids of a moment stand together in an
 * index, which makes writing many of them several times cheaper (RFC 9562, version 8: 48 bits of
 * milliseconds as in version 7, then a hash).
 */
export function momentBasedId(at: Instant, ...parts: readonly string[]): string {
  const time = at.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-8${endOf(digestOf(parts.join('/')))}`;
}

/** Where the version of an id stands, and the versions that begin with a moment. */
const VERSION_AT = 14;
const MOMENT_VERSIONS = '78';

/**
 * Id of an event: a command that is repeated appends the same events again. Takes the moment of the command's
 * id, where that has one.
 */
export function eventId(commandId: string, stream: string, index: number): string {
  const digest = digestOf(`event/${commandId}/${stream}/${String(index)}`);
  return MOMENT_VERSIONS.includes(commandId[VERSION_AT] ?? '-')
    ? `${commandId.slice(0, VERSION_AT)}8${endOf(digest)}`
    : `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${endOf(digest)}`;
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

/** Id of the run that a backfill makes of a task's nominal time. */
export function backfillRunId(taskId: string, nominal: string, backfillId: string): string {
  return nameBasedId('run', taskId, 'backfill', nominal, backfillId);
}

/** Id of the run by which a command retries a failed one. */
export function retryRunId(runId: string, commandId: string): string {
  return nameBasedId('run', runId, 'retry', commandId);
}
