import { setTimeout as wait } from 'node:timers/promises';

/**
 * The pause in milliseconds after a number of failures (from 1): doubles from the first pause to the longest, minus a
 * random half, so that clients of a recovering server do not arrive all at once.
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

/** A promise's outcome, or `undefined` after a timeout (`Infinity`: none). A later outcome is dropped. */
export async function withTimeout<T>(
  promise: Promise<T>,
  milliseconds: number,
): Promise<T | undefined> {
  if (milliseconds === Infinity) return promise;
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

/** A promise's outcome, or `undefined` when the signal is aborted first. A later outcome is dropped. */
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
