// Node exposes a CommonJS module as its default export.
// oxlint-disable-next-line import/default
import rrule from 'rrule';
import type { Instant } from '../../clock.ts';
import { BoundedCache } from '../bounded-cache.ts';
import { civilOf, DAY, HOUR, modulo, SECOND, sortedUnique, weekdayOf } from '../civil.ts';
import { MAX_COUNT } from '../rrule/rrule-count.ts';
import { parseRruleParts, type RruleParts } from '../rrule/rrule-parts.ts';
import { parseRecurrence, type Recurrence } from '../rrule/recurrence.ts';
import type { Zone } from '../zone.ts';
import { listWords, timesOfDayWords, timeWords } from './times-of-day-words.ts';

const MINUTE = 60 * SECOND;
const monthNames =
  'January February March April May June July August September October November December'.split(
    ' ',
  );
const dayNames = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'];

/** A recurrence in words, and the zone of its times. */
export interface RruleWords {
  /** null if no words describe the whole recurrence. */
  readonly words: string | null;
  readonly zone: Zone;
}

/** The parts of a rule that name days, as passed to the library. */
type DayParts = Pick<RruleParts, 'interval' | 'months' | 'monthDays' | 'weekdays'> & {
  readonly freq: 'YEARLY' | 'MONTHLY' | 'WEEKLY' | 'DAILY';
};

/**
 * An RFC 5545 recurrence in words, such as "every weekday at 09:00".
 *
 * The words for the days are rrule's. It leaves out minutes, BYSETPOS, EXDATE and parts taken from the start, and reads
 * some combinations differently from RFC 5545. So it only gets day rules that it words correctly; other words are added
 * here.
 * @param anchor the start if there is no DTSTART
 * @throws ScheduleError for an invalid recurrence
 */
export function rruleWords(expression: string, taskZone: Zone, anchor: Instant): RruleWords {
  const text = parseRecurrence(expression);
  const parts = parseRruleParts(text.rule);
  const zone = text.dtstart?.zone ?? taskZone;
  const second = Math.floor(anchor / SECOND) * SECOND;
  const start = text.dtstart?.wall ?? second + zone.offsetAt(second);
  const rule = parts.positions === null ? ruleWords(parts, start) : null;
  return { words: rule === null ? null : rule + boundWords(text, parts), zone };
}

function ruleWords(parts: RruleParts, start: number): string | null {
  const { freq } = parts;
  if (freq === 'HOURLY' || freq === 'MINUTELY') return subDailyWords(parts, freq);
  if (parts.weekNumbers !== null || parts.yearDays !== null) return null;
  const times = timesOfDayWords({
    hours: parts.hours ?? [Math.floor(modulo(start, DAY) / HOUR)],
    minutes: parts.minutes ?? [Math.floor(modulo(start, HOUR) / MINUTE)],
    seconds: parts.seconds ?? [Math.floor(modulo(start, MINUTE) / SECOND)],
  });
  const days = dayRuleOf({ ...parts, freq }, start);
  return times === null || days === null ? null : `${dayWords(days)} ${times}`;
}

/** Words for a rule by the hour or minute that has no other part than the minutes of each hour. */
function subDailyWords(parts: RruleParts, freq: 'HOURLY' | 'MINUTELY'): string | null {
  const { months, monthDays, yearDays, weekdays, weekNumbers, hours, minutes, seconds } = parts;
  const others = [months, monthDays, yearDays, weekdays, weekNumbers, hours, seconds];
  if (others.some((part) => part !== null)) return null;
  const every = libraryWords(`FREQ=${freq};INTERVAL=${parts.interval}`);
  if (minutes === null) return every;
  if (freq === 'MINUTELY' || minutes.length > 6) return null;
  const sorted = sortedUnique(minutes).map(String);
  return `${every} at minute${sorted.length === 1 ? '' : 's'} ${listWords(sorted)}`;
}

/** The same days in a form that the library words correctly; null if there is none. */
function dayRuleOf(given: DayParts, start: number): DayParts | null {
  const { freq, interval, months, monthDays, weekdays } = given;
  const counted = weekdays?.some(({ nth }) => nth !== 0) === true;
  const { month, day } = civilOf(Math.floor(start / DAY));
  if (monthDays !== null && weekdays !== null) return null;
  if (counted) {
    // The library does not word counts within a year.
    const isWithinMonth = freq === 'MONTHLY' || months !== null;
    const isUniform = weekdays.every(({ nth }) => nth !== 0);
    return isWithinMonth && isUniform && (months === null || interval === 1) ? given : null;
  }
  // Every Monday of a month or year is every Monday, in the given months.
  if (weekdays !== null && freq !== 'WEEKLY') {
    return interval === 1 ? { ...given, freq: 'WEEKLY' } : null;
  }
  switch (freq) {
    case 'WEEKLY': {
      if (months !== null && interval > 1) return null;
      const weekday = weekdayOf(Math.floor(start / DAY));
      return { ...given, weekdays: weekdays ?? [{ weekday, nth: 0 }] };
    }
    case 'DAILY':
      if (interval > 1) return months === null && monthDays === null ? given : null;
      return monthDays === null ? given : { ...given, freq: 'MONTHLY' };
    case 'MONTHLY':
      if (months !== null && interval > 1) return null;
      return { ...given, monthDays: monthDays ?? [day] };
    case 'YEARLY':
      if (monthDays !== null && months === null) {
        return interval === 1 ? { ...given, freq: 'MONTHLY' } : null;
      }
      return { ...given, months: months ?? [month], monthDays: monthDays ?? [day] };
  }
}

function dayWords({ freq, interval, months, monthDays, weekdays }: DayParts): string {
  if (freq === 'WEEKLY' || freq === 'DAILY') {
    const names =
      months === null ? [] : sortedUnique(months).map((month) => monthNames[month - 1] ?? '');
    return `${weekWords(freq, interval, weekdays)}${names.length === 0 ? '' : ` in ${listWords(names)}`}`;
  }
  // The library would say "every 2 years March on the 15th".
  const isRare = freq === 'YEARLY' && interval > 1;
  const rule = [`FREQ=${freq}`, `INTERVAL=${isRare ? 1 : interval}`];
  if (months !== null) rule.push(`BYMONTH=${sortedUnique(months).join(',')}`);
  if (monthDays !== null) rule.push(`BYMONTHDAY=${sortedUnique(monthDays).join(',')}`);
  if (weekdays !== null) rule.push(`BYDAY=${bydayOf(weekdays)}`);
  const phrase = libraryWords(rule.join(';'));
  const words = isRare ? phrase.replace(/^every /, `every ${interval} years in `) : phrase;
  const day = monthDays !== null && words.endsWith('last') ? ' day' : '';
  const isMissing = monthDays?.some((each) => Math.abs(each) > 28) === true;
  const isFifth = weekdays?.some(({ nth }) => Math.abs(nth) > 4) === true;
  return `${words}${day}${isMissing || isFifth ? ' (in months that have it)' : ''}`;
}

function weekWords(
  freq: 'WEEKLY' | 'DAILY',
  interval: number,
  weekdays: RruleParts['weekdays'],
): string {
  const every = `FREQ=${freq};INTERVAL=${interval}`;
  if (weekdays === null) return libraryWords(every);
  if (weekdays.length === 7) {
    return interval === 1 ? 'every day' : `${libraryWords(every)} on every day of the week`;
  }
  return libraryWords(`${every};BYDAY=${bydayOf(weekdays)}`).replace(/, ([^,]*)$/, ' and $1');
}

const bydayOf = (weekdays: NonNullable<RruleParts['weekdays']>): string =>
  weekdays.map(({ nth, weekday }) => `${nth || ''}${dayNames[weekday] ?? ''}`).join(',');

/** Start, end, count, exceptions and additions of a rule. */
function boundWords(text: Recurrence, { until, count }: RruleParts): string {
  const { dtstart, exdates, rdates } = text;
  const words: string[] = [];
  if (dtstart !== null) words.push(`from ${dateWords(dtstart.wall)}`);
  if (count !== null && count <= MAX_COUNT) {
    words.push(count === 1 ? 'once only' : `${count} times in all`);
  }
  if (until !== null) {
    const zone = until.zone === null ? '' : ` ${until.zone.name}`;
    words.push(
      `until ${dateWords(until.wall)}${until.dateOnly ? '' : clockWords(until.wall)}${zone}`,
    );
  }
  if (exdates.length > 0) words.push(`with exceptions (${exdates.length} EXDATE)`);
  if (rdates.length > 0) words.push(`with added times (${rdates.length} RDATE)`);
  return words.map((each) => `, ${each}`).join('');
}

const dateWords = (wall: number): string => new Date(wall).toISOString().slice(0, 10);

function clockWords(wall: number): string {
  const [hour, minute] = [
    Math.floor(modulo(wall, DAY) / HOUR),
    Math.floor(modulo(wall, HOUR) / MINUTE),
  ];
  return ` at ${timeWords(hour, minute, Math.floor(modulo(wall, MINUTE) / SECOND))}`;
}

const phrases = new BoundedCache<string>(2_000);

const libraryWords = (rule: string): string =>
  phrases.get(rule, () => rrule.RRule.fromString(rule).toText());
