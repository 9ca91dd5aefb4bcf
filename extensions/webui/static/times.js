// Times, durations and numbers for people. Times are in the zone that the person has chosen.

import { formatIn, instantOf, shownZone, wallTime } from './zones.js';

const clockParts = { hour: '2-digit', minute: '2-digit', second: '2-digit' };
const date = { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' };
const full = { ...date, ...clockParts, timeZoneName: 'short' };
const short = { day: '2-digit', month: 'short', ...clockParts };
const shortOfYear = { dateStyle: 'medium', timeStyle: 'short' };
const format = (options, iso) => formatIn(shownZone(), 'en-GB', options).format(new Date(iso));
const units = [
  ['day', 86_400],
  ['h', 3600],
  ['min', 60],
];

/** `in 5 min`, `3 days ago`, `now` */
export function ago(iso) {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  const distance = Math.abs(seconds);
  const [unit, length] = units.find(([, each]) => distance >= each) ?? ['s', 1];
  const many = Math.floor(distance / length);
  if (unit === 's' && many === 0) return 'now';
  const text = `${many} ${unit === 'day' && many > 1 ? 'days' : unit}`;
  return seconds < 0 ? `${text} ago` : `in ${text}`;
}

/** `21 Nov, 09:10:05`, or with the year if it is not this one. */
export function dateText(iso) {
  const yearOf = (instant) => wallTime(instant).slice(0, 4);
  const isThisYear = yearOf(new Date(iso)) === yearOf(new Date());
  return format(isThisYear ? short : shortOfYear, iso);
}

/** `09:10:05` */
export const clockText = (iso) => format(clockParts, iso);

/** `Sat, 21 Nov 2026, 09:10:05 CET · 2026-11-21T08:10:05.000Z` */
export const fullText = (iso) => `${format(full, iso)} · ${iso}`;

/** `2026-11-22 00:15:00 GMT+01:00`: an instant in a time zone; in UTC if the browser does not know the zone. */
export function inZone(iso, timeZone) {
  const parts = { year: 'numeric', month: '2-digit', day: '2-digit', ...clockParts };
  try {
    const zoned = new Intl.DateTimeFormat('sv-SE', {
      ...parts,
      timeZoneName: 'longOffset',
      timeZone,
    });
    return zoned.format(new Date(iso));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return iso;
  }
}

/** The value of a `datetime-local` field, to the second. */
export const localField = (instant) => wallTime(instant);

/**
 * The instant of a `datetime-local` field in ISO 8601, or `''`. An instant stays as it is. So does an invalid time,
 * which the service then rejects with a message.
 */
export function isoOf(value) {
  const instant = HAS_ZONE.test(value) ? Date.parse(value) : instantOf(value);
  return Number.isNaN(instant) ? value : new Date(instant).toISOString();
}

const HAS_ZONE = /(Z|[+-]\d\d:?\d\d)$/;

/** `1.2 s`, `7 min 30 s`, `2 h 05 min`, of milliseconds. */
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes >= 2880) return `${Math.round(minutes / 1440)} days`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** How long a run has taken so far, in milliseconds; null if it has not started. */
export const elapsed = ({ started_at, finished_at }) =>
  started_at === null
    ? null
    : (finished_at === null ? Date.now() : Date.parse(finished_at)) - Date.parse(started_at);

/** The duration of a run; a dash if it has not started. */
export const durationOf = (run) => (run.started_at === null ? '–' : duration(elapsed(run)));

const counts = new Intl.NumberFormat('en-GB');
/** `1,234`; a dash for null. */
export const count = (value) => (value === null ? '–' : counts.format(value));

/** `1,234 runs` */
export const counted = (many, one, several = `${one}s`) =>
  `${count(many)} ${many === 1 ? one : several}`;

/** `98.8 %` of a share; a dash for null. */
export const percent = (share) =>
  share === null ? '–' : `${(share * 100).toFixed(share === 1 ? 0 : 1)} %`;
