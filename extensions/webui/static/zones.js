// Time zones: which one the page's times are in, and the arithmetic of local times.

import { useLayoutEffect } from './preact.js';
import { getState, setState } from './store.js';

/** The browser's zone. */
export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'UTC';

/** The zone that all times and days of the page are in: an IANA name. */
export function shownZone() {
  const { zone, taskZone } = getState();
  if (zone === 'utc') return 'UTC';
  return zone === 'task' && taskZone !== null ? taskZone : ownZone;
}

/** Makes the zone of the shown task available while its view is mounted. @param {string | undefined} zone */
export function useTaskZone(zone) {
  useLayoutEffect(() => {
    if (zone === undefined || !isKnown(zone)) return undefined;
    setState({ taskZone: zone });
    return () => setState({ taskZone: null });
  }, [zone]);
}

const known = new Map();

/** Whether the browser knows a zone. The service may know more zones. */
function isKnown(zone) {
  if (!known.has(zone)) known.set(zone, isValid(zone));
  return known.get(zone);
}

function isValid(timeZone) {
  try {
    Intl.DateTimeFormat('en-GB', { timeZone });
    return true;
  } catch {
    return false;
  }
}

const formats = new Map();

/** Formats times in a zone. Creating a format is slow, so each is created once. @param {string} locale */
export function formatIn(timeZone, locale, options) {
  const key = `${timeZone} ${locale} ${JSON.stringify(options)}`;
  if (!formats.has(key)) {
    formats.set(key, new Intl.DateTimeFormat(locale, { ...options, timeZone }));
  }
  return formats.get(key);
}

const two = '2-digit';
const date = { year: 'numeric', month: two, day: two };
const wallParts = { ...date, hour: two, minute: two, second: two, hourCycle: 'h23' };

/** The local time in a zone: `2026-11-21T09:10:05`. @param {number | Date} instant in milliseconds */
export const wallTime = (instant, zone = shownZone()) =>
  formatIn(zone, 'sv-SE', wallParts).format(instant).replace(' ', 'T');

/** The date in a zone: `2026-11-21`. */
export const dateIn = (instant, zone = shownZone()) => wallTime(instant, zone).slice(0, 10);

/**
 * The instant, in milliseconds, of a local time in a zone. A local time that is skipped when the clocks go forward is
 * read as if they had not. NaN for an invalid time.
 * @param {string} wall `2026-11-21T09:10`, with seconds or without
 */
export function instantOf(wall, zone = shownZone()) {
  const asUtc = Date.parse(`${wall}Z`);
  if (Number.isNaN(asUtc)) return NaN;
  const offset = (instant) => Date.parse(`${wallTime(instant, zone)}Z`) - instant;
  const near = asUtc - offset(asUtc);
  return asUtc - offset(near);
}

/** The first instant of a date in a zone, in milliseconds. */
export const startOfDay = (day, zone = shownZone()) => instantOf(`${day}T00:00`, zone);

/** The date a number of days later. */
export function addDays(day, many) {
  const [year, month, ofMonth] = day.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1, ofMonth + many)).toISOString().slice(0, 10);
}
