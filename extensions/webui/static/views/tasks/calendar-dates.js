// The dates of a calendar.

import { addDays } from '../../zones.js';

/** The first date of the month that is a number of months after a date. */
export function addMonths(date, months) {
  const [year, month] = date.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 10);
}

/** The last date of a month. */
export const lastOfMonth = (date) => addDays(addMonths(date, 1), -1);

/** Formats a date: `Thursday 26 November`, `November 2026`. */
export const dateWords = (date, options) =>
  new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' }).format(
    new Date(`${date}T00:00:00Z`),
  );

/** The next or previous day, month or year of a calendar. */
export function step(by, date, many) {
  if (by === 'day') return addDays(date, many);
  return addMonths(date, by === 'month' ? many : 12 * many);
}
