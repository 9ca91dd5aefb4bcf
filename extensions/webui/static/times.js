// Times, durations and numbers for people, in the browser's time zone.

const clockParts = { hour: '2-digit', minute: '2-digit', second: '2-digit' };
const format = (options) => new Intl.DateTimeFormat('en-GB', options);
const date = { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' };
const full = format({ ...date, ...clockParts, timeZoneName: 'short' });
const short = format({ day: '2-digit', month: 'short', ...clockParts });
const shortOfYear = format({ dateStyle: 'medium', timeStyle: 'short' });
const clock = format(clockParts);
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
  const instant = new Date(iso);
  const isThisYear = instant.getFullYear() === new Date().getFullYear();
  return (isThisYear ? short : shortOfYear).format(instant);
}

/** `09:10:05` */
export const clockText = (iso) => clock.format(new Date(iso));

/** `Sat, 21 Nov 2026, 09:10:05 CET · 2026-11-21T08:10:05.000Z` */
export const fullText = (iso) => `${full.format(new Date(iso))} · ${iso}`;

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
export const localField = (instant) =>
  new Date(instant.getTime() - instant.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);

/** The instant of a `datetime-local` field, or `''`. */
export const isoOf = (value) => (value === '' ? '' : new Date(value).toISOString());

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
