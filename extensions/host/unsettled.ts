import type { Extension } from './extension.ts';

/**
 * Waits for something of an extension, and names it in the status for as long as it takes longer than it may: what
 * waits for it waits, too, and nobody would know for what.
 *
 * @param what as the status names it, such as `subscriber of a.*: the event <id>`
 * @param limit milliseconds
 * @param tell told once, when it has taken so long
 */
export async function namedWhenLate<T>(
  extension: Pick<Extension, 'unsettled'>,
  what: string,
  limit: number,
  tell: (error: Error) => void,
  work: Promise<T>,
): Promise<T> {
  const key = {};
  const since = Date.now();
  const timer = setTimeout(() => {
    extension.unsettled.set(key, { what, since });
    tell(lateError(`it has not settled within ${limit / 1000} s; it is waited for`));
  }, limit);
  timer.unref();
  try {
    return await work;
  } finally {
    clearTimeout(timer);
    extension.unsettled.delete(key);
  }
}

/** As the metrics know it. */
export function lateError(message: string): Error {
  const error = new Error(message);
  error.name = 'TimeoutError';
  return error;
}
