import { performance } from 'node:perf_hooks';
import type { Cancel, Clock, Instant } from '../domain/clock.ts';

/**
 * Most milliseconds before a timer checks the time again. Timers run on monotonic time and do not notice a suspended
 * machine or an adjusted clock; the check limits how late a fire gets. `setTimeout` overflows at 24.8 days.
 */
const MAX_TIMEOUT_MS = 10_000;

/** The machine's clock. */
export class SystemClock implements Clock {
  now(): Instant {
    return Date.now();
  }

  at(instant: Instant, callback: () => void, options?: { readonly background?: boolean }): Cancel {
    if (Number.isNaN(instant)) throw new RangeError('A timer needs an instant, not NaN');
    return wait(() => instant - Date.now(), callback, options?.background ?? false);
  }

  steady(): number {
    return performance.now();
  }

  after(
    milliseconds: number,
    callback: () => void,
    options?: { readonly background?: boolean },
  ): Cancel {
    if (Number.isNaN(milliseconds)) throw new RangeError('A timer needs a duration, not NaN');
    const end = performance.now() + milliseconds;
    return wait(() => end - performance.now(), callback, options?.background ?? false);
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(reasonOf(signal));
        return;
      }
      const onAbort = (): void => {
        cancel();
        if (signal !== undefined) reject(reasonOf(signal));
      };
      const cancel = this.after(milliseconds, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }
}

/** Calls back once, on a later turn, when no time remains; `setTimeout` alone can be a little early. */
function wait(remaining: () => number, callback: () => void, background: boolean): Cancel {
  let timer: NodeJS.Timeout;
  const arm = (): void => {
    const timeout = Math.min(Math.max(Math.ceil(remaining()), 0), MAX_TIMEOUT_MS);
    timer = setTimeout(() => {
      if (remaining() > 0) arm();
      else callback();
    }, timeout);
    if (background) timer.unref();
  };
  arm();
  return () => {
    clearTimeout(timer);
  };
}

function reasonOf(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error('Aborted', { cause: reason });
}
