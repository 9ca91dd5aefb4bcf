import cronstrue from 'cronstrue';
import { BoundedCache } from '../bounded-cache.ts';
import { sortedUnique } from '../civil.ts';
import { eitherDay, parseCron, type CronFields } from '../cron.ts';
import type { CronField } from '../cron-field.ts';
import { timesOfDayWords } from './times-of-day-words.ts';

const MINUTES = 60;
const HOURS = 24;

/** The prefix of the library's words for expressions about days, which all fire at midnight. */
const MIDNIGHT = 'At 00:00';

/**
 * A cron expression in words, such as "at 09:00, Monday through Friday".
 *
 * The words are cronstrue's. It reads some expressions differently from this service (`0-7`, both day fields, steps
 * that do not divide an hour). So it only gets the parsed values, written in forms on which both agree.
 * @returns null if there is no such form
 * @throws ScheduleError for an invalid expression
 */
export function cronWords(expression: string): string | null {
  const fields = parseCron(expression);
  const days = daysWords(fields);
  if (days === null) return null;
  const { hour, minute, second } = fields;
  const listed = timesOfDayWords({
    hours: hour.values,
    minutes: minute.values,
    seconds: second.values,
  });
  const times = listed ?? denseTimesWords(fields);
  if (times === null) return null;
  // "Every 5 minutes" needs no "every day", but times in some hours do.
  if (days === '' && hour.values.size < HOURS) return `${times}, every day`;
  return `${times}${days}`;
}

/** The days, each part after a comma; empty for every day, null if there are no words. */
function daysWords(fields: CronFields): string | null {
  const { dayOfMonth, month, dayOfWeek } = fields;
  const dates = dateForm(dayOfMonth);
  const weekdays = weekdayForm(dayOfWeek);
  if (dates === null || weekdays === null) return null;
  const months = month.values.size === 12 ? '*' : listForm(month.values, 1);
  const monthWords = dayPhrase(`* ${months} *`);
  if (!eitherDay(fields)) {
    // A day must match both fields here, but the library's words suggest "either".
    if (dates !== '*' && weekdays !== '*') return null;
    return dayPhrase(`${dates} ${months} ${weekdays}`);
  }
  if (dates === '*' || weekdays === '*') return monthWords;
  const [byDate, byWeekday] = [dayPhrase(`${dates} * *`), dayPhrase(`* * ${weekdays}`)];
  if (byDate === null || byWeekday === null || monthWords === null) return null;
  return `${byDate} or ${byWeekday.replace(/^, (?:only )?/, '')}${monthWords}`;
}

function dayPhrase(days: string): string | null {
  const phrase = libraryWords(`0 0 ${days}`);
  return phrase.startsWith(MIDNIGHT) ? phrase.slice(MIDNIGHT.length) : null;
}

/** Words for times that are too many to list; null if there are no unambiguous ones. */
function denseTimesWords({ second, minute, hour }: CronFields): string | null {
  const everyHour = hour.values.size === HOURS;
  const minutes = cycleForm(minute.values, MINUTES);
  const isOnTheMinute = second.values.size === 1 && second.values.has(0);
  if (!isOnTheMinute) {
    const seconds = cycleForm(second.values, MINUTES);
    if (!everyHour || minutes !== '*' || seconds === null) return null;
    return lowerFirst(libraryWords(`${seconds} * * * * *`));
  }
  const hours = hoursForm(hour.values, minutes);
  if (hours === null) return null;
  const form = minutes ?? (everyHour ? listForm(minute.values, 0) : null);
  return form === null ? null : lowerFirst(libraryWords(`${form} ${hours} * * *`));
}

/** The hours next to a form of minutes: consecutive hours or, for a single minute, every n-th. */
function hoursForm(hours: ReadonlySet<number>, minutes: string | null): string | null {
  const cycle = cycleForm(hours, HOURS);
  if (cycle === '*') return cycle;
  if (minutes === null) return null;
  const isOneMinute = /^\d+$/.test(minutes);
  if (cycle !== null && isOneMinute) return cycle;
  const row = listForm(hours, 0);
  return /^\d+(?:-\d+)?$/.test(row) ? row : null;
}

/** `*`, one value, or a step that divides the hour or day evenly; null for others. */
function cycleForm(set: ReadonlySet<number>, size: number): string | null {
  const values = sortedUnique(set);
  const [first = 0] = values;
  if (values.length === 1) return String(first);
  const step = size / values.length;
  const isEven = Number.isInteger(step) && values.every((value, at) => value === first + at * step);
  if (!isEven) return null;
  if (step === 1) return '*';
  return first === 0 ? `*/${step}` : `${first}/${step}`;
}

/** `a-b` for three or more consecutive values, otherwise `a,b,c`. */
function listForm(set: ReadonlySet<number>, least: number): string {
  const values = sortedUnique(set);
  const [first = least] = values;
  const last = values.at(-1) ?? first;
  const isRow = values.length > 2 && last - first === values.length - 1;
  return isRow ? `${first}-${last}` : values.join(',');
}

function dateForm({ values, lastDay }: CronField): string | null {
  if (values.size === 31) return '*';
  if (lastDay) return values.size === 0 ? 'L' : null;
  return listForm(values, 1);
}

function weekdayForm({ values, nth }: CronField): string | null {
  if (values.size === 7) return '*';
  const [one, ...more] = nth;
  if (one === undefined) return listForm(values, 0);
  if (more.length > 0 || values.size > 0) return null;
  return one.nth === -1 ? `${one.weekday}L` : `${one.weekday}#${one.nth}`;
}

const phrases = new BoundedCache<string>(2_000);

const libraryWords = (expression: string): string =>
  phrases.get(expression, () => cronstrue.toString(expression, { use24HourTimeFormat: true }));

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
