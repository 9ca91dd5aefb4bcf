// Hours and days of statistics, by name.

import { formatIn } from '../../zones.js';

const day = { day: 'numeric', month: 'short' };
const hour = { hour: '2-digit', minute: '2-digit' };

/** The short name of an hour or day in a zone. */
export const bucketLabel = (iso, by, timeZone) =>
  formatIn(timeZone, 'en-GB', by === 'hour' ? hour : day).format(new Date(iso));

/** The full name of an hour or day in a zone. */
export function bucketName(iso, by, timeZone) {
  const parts = { weekday: 'short', ...day, ...(by === 'hour' ? hour : {}) };
  return formatIn(timeZone, 'en-GB', parts).format(new Date(iso));
}
