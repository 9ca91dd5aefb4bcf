/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number;

/** Undoes what was set; does nothing once it has happened. */
export type Cancel = () => void;

/**
 * Time, as the service sees it. Everything that waits or asks what time it is gets one of these, so
 * that tests can run a year in seconds and never sleep.
 */
export interface Clock {
  /** The present moment. */
  now(): Instant;

  /**
   * Calls back once, at or after an instant. An instant that has passed calls back soon, never at
   * once (never within this call). Any distance is allowed, also more than 24.8 days, at which
   * `setTimeout` overflows. `background` timers do not keep the process alive.
   */
  at(instant: Instant, callback: () => void, options?: { readonly background?: boolean }): Cancel;

  /** Resolves after a number of milliseconds; rejects with the signal's reason when it is aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

let lastInstant = Number.NaN;
let lastText = '';

/** An instant as the service writes it: ISO 8601, UTC, milliseconds, `Z`. */
export function toIso(instant: Instant): string {
  // Much is written within one millisecond, and writing a date is slow.
  if (instant !== lastInstant) {
    lastText = new Date(instant).toISOString();
    lastInstant = instant;
  }
  return lastText;
}

/** The instant of a timestamp that the service itself wrote. */
export function fromIso(text: string): Instant {
  return Date.parse(text);
}
