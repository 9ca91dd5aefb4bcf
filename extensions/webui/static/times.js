// Times and durations for people, in the browser's zone.

import { h } from './dom.js';

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const steps = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

/** `in 5 minutes` */
export function ago(iso) {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  const [unit, length] = steps.find(([, each]) => Math.abs(seconds) >= each) ?? steps[3];
  return relative.format(Math.round(seconds / length), unit);
}

/** An instant, with how far away it is. A dash for null. */
export const when = (iso) =>
  iso === null || iso === undefined
    ? '–'
    : h(
        'time',
        { datetime: iso, title: iso },
        full.format(new Date(iso)),
        h('span.soft', {}, ` ${ago(iso)}`),
      );

/** An instant without its distance. */
export const moment = (iso) => h('time', { datetime: iso, title: iso }, full.format(new Date(iso)));

/** `1.2 s`, of milliseconds. */
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (milliseconds < 3_600_000) return `${(milliseconds / 60_000).toFixed(1)} min`;
  return `${(milliseconds / 3_600_000).toFixed(1)} h`;
}

/** Only how far away an instant is, where there is little room. A dash for null. */
export const nearness = (iso) =>
  iso === null ? '–' : h('time', { datetime: iso, title: iso }, ago(iso));

/** How long a run has taken, or takes by now; null where it has not begun. */
export const tookOf = ({ started_at, finished_at }) =>
  started_at === null
    ? null
    : (finished_at === null ? Date.now() : Date.parse(finished_at)) - Date.parse(started_at);
