// Times and durations for people, in the browser's zone.

import { h } from './dom.js';

const full = new Intl.DateTimeFormat('en-GB', {
  ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
});
const short = new Intl.DateTimeFormat('en-GB', {
  ...{ day: '2-digit', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' },
});
const shortOfYear = new Intl.DateTimeFormat('en-GB', {
  ...{ day: '2-digit', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit' },
});
const steps = [
  ['day', 86_400],
  ['h', 3600],
  ['min', 60],
];
/** Whether instants stand as such, and not as how far away they are. */
let exact = false;

/** `in 5 min`, `3 days ago`, `now` */
export function ago(iso) {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  const far = Math.abs(seconds);
  const [unit, length] = steps.find(([, each]) => far >= each) ?? ['s', 1];
  const many = Math.floor(far / length);
  if (unit === 's' && many === 0) return 'now';
  const text = `${many} ${unit === 'day' && many > 1 ? 'days' : unit}`;
  return seconds < 0 ? `${text} ago` : `in ${text}`;
}

/** `21 Nov, 09:10:05`; with the year where it is another. */
export function clockText(iso) {
  const date = new Date(iso);
  const sameYear = date.getFullYear() === new Date().getFullYear();
  return (sameYear ? short : shortOfYear).format(date);
}

/** `2026-11-22 00:15:00 GMT+01:00`: an instant by the clock of a zone; in UTC where the browser does not know the zone. */
export function inZone(iso, timeZone) {
  const format = {
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'longOffset' },
  };
  try {
    return new Intl.DateTimeFormat('sv-SE', { ...format, timeZone }).format(new Date(iso));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return iso;
  }
}

/** An instant as a field for local times holds it, to the second. */
export const localField = (instant) =>
  new Date(instant.getTime() - instant.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);

const title = (iso) => `${full.format(new Date(iso))} · ${iso}`;
const textOf = (iso) => (exact ? clockText(iso) : ago(iso));

/** An instant by how far away it is, which goes on by itself; exactly on hover. A dash for null. */
export const when = (iso) =>
  iso === null || iso === undefined
    ? '–'
    : h('time', { datetime: iso, title: title(iso), 'data-near': true }, textOf(iso));

/** An instant, and how far away it is on hover. A dash for null. */
export const moment = (iso) =>
  iso === null || iso === undefined
    ? '–'
    : h('time', { datetime: iso, title: `${ago(iso)} · ${title(iso)}` }, clockText(iso));

/** Both. */
export const moments = (iso) =>
  iso === null || iso === undefined ? '–' : [moment(iso), ' ', h('span.soft', {}, when(iso))];

function tick() {
  for (const element of document.querySelectorAll('time[data-near]')) {
    const text = textOf(element.dateTime);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Lets all times be exact, or relative again. @returns whether they are exact now */
export function toggleExact() {
  exact = !exact;
  tick();
  return exact;
}

setInterval(() => {
  if (!document.hidden) tick();
}, 1000);

/** `1.2 s`, `7 min 30 s`, `2 h 05 min`, of milliseconds. */
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 2880) {
    return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
  }
  return `${Math.round(minutes / 1440)} days`;
}

/** How long a run has taken, or takes by now; null where it has not begun. */
export const tookOf = ({ started_at, finished_at }) =>
  started_at === null
    ? null
    : (finished_at === null ? Date.now() : Date.parse(finished_at)) - Date.parse(started_at);

const counts = new Intl.NumberFormat('en-GB');
/** `1,234` */
export const count = (value) => counts.format(value);

/** `98.8 %` of a share; a dash for null. */
export const percent = (share) =>
  share === null || share === undefined ? '–' : `${(share * 100).toFixed(share === 1 ? 0 : 1)} %`;
