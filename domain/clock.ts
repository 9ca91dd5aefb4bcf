/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number;

/**
 * How far the clocks of the machines that write one log are taken to differ at most. What lies further ahead was written
 * by a clock that was wrong. Milliseconds.
 */
export const CLOCK_SKEW = 3_600_000;

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

  /**
   * Milliseconds since a moment that never changes. Goes on evenly when the clock is set: for how long something has
   * taken, or may take.
   */
  steady(): number;

  /**
   * Calls back once, after so many milliseconds by {@link steady}, on a later turn: however the clock is set meanwhile.
   * What limits a time, or comes again and again, goes by this; what has an instant of its own by {@link at}.
   */
  after(
    milliseconds: number,
    callback: () => void,
    options?: { readonly background?: boolean },
  ): Cancel;

  /**
   * Resolves after a number of milliseconds by {@link steady}; rejects with the signal's reason when it is aborted.
   */
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

/** Up to its seconds, of a timestamp as {@link toIso} writes it. */
const TO_THE_SECONDS = '2026-11-22T09:30:'.length;
const LENGTH = '2026-11-22T09:30:15.042Z'.length;

const ZERO = '0'.charCodeAt(0);

let lastMinute = '1970-01-01T00:00:';
let lastMinuteAt: Instant = 0;

/** The instant of a timestamp that the service itself wrote; NaN for what is none, as of `Date.parse`. */
export function fromIso(text: string): Instant {
  // Some for each event of each run, mostly of one minute, and to read a date is slow.
  const inMinute = millisecondsInMinute(text);
  if (text.startsWith(lastMinute) && !Number.isNaN(inMinute)) return lastMinuteAt + inMinute;
  const instant = Date.parse(text);
  if (!Number.isNaN(instant) && toIso(instant) === text) {
    lastMinute = text.slice(0, TO_THE_SECONDS);
    lastMinuteAt = instant - inMinute;
  }
  return instant;
}

/** What `15.042Z` at the end says; NaN where there is no such end. */
function millisecondsInMinute(text: string): number {
  if (text.length !== LENGTH || text[19] !== '.' || text[23] !== 'Z') return Number.NaN;
  const second = 10 * digitAt(text, 17) + digitAt(text, 18);
  const rest = 100 * digitAt(text, 20) + 10 * digitAt(text, 21) + digitAt(text, 22);
  return second < 60 ? 1000 * second + rest : Number.NaN;
}

function digitAt(text: string, index: number): number {
  const digit = text.charCodeAt(index) - ZERO;
  return digit >= 0 && digit <= 9 ? digit : Number.NaN;
}
