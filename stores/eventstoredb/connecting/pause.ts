import { setTimeout as wait } from 'node:timers/promises';

/**
 * How long to pause before the attempt after `failures` failed ones (1 and more): doubling from the
 * first pause to the longest, of which a random half is taken off, so that the clients of a server
 * that comes back do not all arrive at once.
 */
export function pauseAfter(failures: number, firstMs: number, longestMs: number): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return full / 2 + (Math.random() * full) / 2;
}

/** Waits; ends early, without an error, when the signal is aborted. */
export async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  try {
    await wait(milliseconds, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    if (!(error instanceof Error && error.name === 'AbortError')) throw error;
  }
}

/** A promise's outcome, or `undefined` when it takes longer; what comes later is dropped. */
export async function within<T>(promise: Promise<T>, milliseconds: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, milliseconds), undefined);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** A promise's outcome, or `undefined` when the signal is aborted before; what comes later is dropped. */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  let stop: () => void = () => undefined;
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
