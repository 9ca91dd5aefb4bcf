import type { Extension } from './extension.ts';

/**
 * Waits for work of an extension. Lists it in the status from when it exceeds its limit until it ends.
 * @param what its name in the status, such as `subscriber of a.*: the event <id>`
 * @param limit milliseconds
 * @param notify called once, when the limit is exceeded
 */
export async function reportOverdue<T>(
  extension: Pick<Extension, 'overdue'>,
  what: string,
  limit: number,
  notify: (error: Error) => void,
  work: Promise<T>,
): Promise<T> {
  const key = {};
  const since = Date.now();
  const timer = setTimeout(() => {
    extension.overdue.set(key, { what, since });
    notify(timeoutError(`still running after ${limit / 1000} s`));
  }, limit);
  timer.unref();
  try {
    return await work;
  } finally {
    clearTimeout(timer);
    extension.overdue.delete(key);
  }
}

/** An error that metrics count as `TimeoutError`. */
export function timeoutError(message: string): Error {
  const error = new Error(message);
  error.name = 'TimeoutError';
  return error;
}
