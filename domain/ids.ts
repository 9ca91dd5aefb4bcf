import { hash } from 'node:crypto';
import type { Instant } from './clock.ts';

/** Namespace of every id that is derived from names (random, fixed). */
const NAMESPACE = '6f1d3c9a-27b4-4e83-9a55-0c8e2f7b41d6';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a string is a UUID of any version. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** A UUID derived from a name: the same name always gives the same id (RFC 9562, version 5). */
export function nameBasedId(...parts: readonly string[]): string {
  const digest = digestOf(parts.join('/'));
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${endOf(digest)}`;
}

/** Hexadecimal. */
function digestOf(name: string): string {
  return hash('sha1', `${NAMESPACE}/${name}`, 'hex');
}

/** The part of a derived id after the version's digit. */
function endOf(digest: string): string {
  const variant = VARIANTS[Number.parseInt(digest.charAt(16), 16) & 0x3] ?? '';
  return `${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

/** The digits whose upper two bits mark an id of RFC 9562. */
const VARIANTS = ['8', '9', 'a', 'b'];

let lastTime = 0;
let lastCount = 0;

/**
 * A new id that sorts by time (RFC 9562, version 7). Ids of one process also ascend within a millisecond: the 12 bits
 * after the time count up from a random start in the lower half.
 */
export function newId(now: Instant): string {
  const random = globalThis.crypto.randomUUID();
  if (now > lastTime) {
    lastTime = now;
    lastCount = Number.parseInt(random.slice(0, 3), 16) & 0x7ff;
  } else if (++lastCount > 0xfff) {
    lastTime += 1;
    lastCount = 0;
  }
  return `${timePart(lastTime)}-7${lastCount.toString(16).padStart(3, '0')}-${random.slice(19)}`;
}

/** The first 48 bits of an id that begins with its time. */
function timePart(time: Instant): string {
  const digits = time.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}

/**
 * An id derived from an instant and a name (RFC 9562, version 8). Ids of the same time are neighbours in an index,
 * which makes writing many of them several times cheaper.
 */
export function timeBasedId(at: Instant, ...parts: readonly string[]): string {
  return `${timePart(at)}-8${endOf(digestOf(parts.join('/')))}`;
}

/** The index of the version's digit in an id, and the versions that begin with a time. */
const VERSION_AT = 14;
const TIMED_VERSIONS = '78';

/** Id of an event: repeating a command appends the same events. Begins with the time of the command's id, if it has one. */
export function eventId(commandId: string, stream: string, index: number): string {
  const digest = digestOf(`event/${commandId}/${stream}/${String(index)}`);
  return TIMED_VERSIONS.includes(commandId[VERSION_AT] ?? '-')
    ? `${commandId.slice(0, VERSION_AT)}8${endOf(digest)}`
    : `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${endOf(digest)}`;
}

/** Id of the run of a task's fire. */
export function scheduledRunId(taskId: string, nominal: string): string {
  return nameBasedId('run', taskId, 'schedule', nominal);
}

/** Id of the run that an event triggers. */
export function triggeredRunId(taskId: string, publishedEventId: string): string {
  return nameBasedId('run', taskId, 'event', publishedEventId);
}

/** Id of the run that a command requests. */
export function manualRunId(taskId: string, commandId: string): string {
  return nameBasedId('run', taskId, 'manual', commandId);
}

/** Id of the run that a backfill requests for a nominal time. */
export function backfillRunId(taskId: string, nominal: string, backfillId: string): string {
  return nameBasedId('run', taskId, 'backfill', nominal, backfillId);
}

/** Id of the run by which a command retries a failed one. */
export function retryRunId(runId: string, commandId: string): string {
  return nameBasedId('run', runId, 'retry', commandId);
}

/** The SHA-256 of a secret token, in hexadecimal: the log holds only this. */
export function tokenHash(token: string): string {
  return sha256(token);
}

/** The SHA-256 of bytes, or of a string in UTF-8, in hexadecimal. */
export function sha256(text: string | Uint8Array): string {
  return hash('sha256', text, 'hex');
}
