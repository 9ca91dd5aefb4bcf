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

/** What stands behind the second, by the milliseconds: `042Z`. */
const MILLISECONDS = Array.from({ length: 1000 }, (_, ms) => `${String(ms).padStart(3, '0')}Z`);

/** Seconds whose texts are kept: now, when a lease ends, when a run was requested and the like alternate. */
const KEPT_SECONDS = 64;
const seconds = new Float64Array(KEPT_SECONDS).fill(Number.NaN);
const textsOfSeconds: string[] = Array.from({ length: KEPT_SECONDS }, () => '');

let lastInstant = Number.NaN;
let lastText = '';

/** An instant as the service writes it: ISO 8601, UTC, milliseconds, `Z`. */
export function toIso(instant: Instant): string {
  // Several for each event of each run, mostly of few seconds, and writing a date is slow.
  if (instant === lastInstant) return lastText;
  const second = Math.floor(instant / 1000);
  const end = MILLISECONDS[instant - second * 1000];
  if (end === undefined) return new Date(instant).toISOString();
  const place = second & (KEPT_SECONDS - 1);
  if (seconds[place] !== second) {
    textsOfSeconds[place] = new Date(second * 1000).toISOString().slice(0, -end.length);
    seconds[place] = second;
  }
  lastText = `${textsOfSeconds[place] ?? ''}${end}`;
  lastInstant = instant;
  return lastText;
}

/** The instant of a timestamp that the service itself wrote. */
export function fromIso(text: string): Instant {
  return Date.parse(text);
}
