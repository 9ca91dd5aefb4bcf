import { sortedUnique } from '../civil.ts';

/** The most times of day that are listed one by one. */
const MAX_LISTED_TIMES = 6;

/** The hours, minutes and seconds of a day; a rule fires at every combination. */
export interface TimesOfDay {
  readonly hours: Iterable<number>;
  readonly minutes: Iterable<number>;
  readonly seconds: Iterable<number>;
}

/** "a", "a and b", "a, b and c". */
export function listWords(items: readonly string[]): string {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1) ?? ''}`;
}

/** `09:00`, or `09:00:30` if the seconds matter. */
export function timeWords(hour: number, minute: number, second: number): string {
  const parts = second === 0 ? [hour, minute] : [hour, minute, second];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
}

/** "at 09:00 and 17:30"; null if there are too many times to list. */
export function timesOfDayWords(times: TimesOfDay): string | null {
  const [hours, minutes, seconds] = [times.hours, times.minutes, times.seconds].map(sortedUnique);
  if (hours === undefined || minutes === undefined || seconds === undefined) return null;
  if (hours.length * minutes.length * seconds.length > MAX_LISTED_TIMES) return null;
  const listed = hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => timeWords(hour, minute, second))),
  );
  return `at ${listWords(listed)}`;
}
