import { performance } from 'node:perf_hooks';
import type { Cancel, Clock, Instant } from '../domain/clock.ts';

/**
 * The longest stretch, in milliseconds, after which a waiting timer looks at the time again. Timers run on
 * monotonic time and do not notice when the machine slept or its clock was put right; looking again bounds
 * how late that makes a fire. It also keeps clear of 24.8 days, at which `setTimeout` overflows.
 */
const LONGEST_STRETCH_MS = 10_000;

/** The machine's time. */
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
    if (Number.isNaN(milliseconds)) throw new RangeError('A timer needs a length, not NaN');
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

/** Calls back once, on a later turn, when nothing remains; `setTimeout` alone may come a little early. */
function wait(remaining: () => number, callback: () => void, background: boolean): Cancel {
  let timer: NodeJS.Timeout;
  const arm = (): void => {
    const stretch = Math.min(Math.max(Math.ceil(remaining()), 0), LONGEST_STRETCH_MS);
    timer = setTimeout(() => {
      if (remaining() > 0) arm();
      else callback();
    }, stretch);
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
