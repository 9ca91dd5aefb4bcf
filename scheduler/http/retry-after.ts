/** A day, in milliseconds. */
const MAX_DELAY = 86_400_000;

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].join('|');
const longDays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const month = `(?<month>${months.join('|')})`;
const time = '(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)';

/** The date formats that recipients must accept (RFC 9110, 5.6.7), all in UTC. */
const forms: readonly RegExp[] = [
  // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^(?:${days}), (?<day>\\d\\d) ${month} (?<year>\\d{4}) ${time} GMT$`),
  // RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^(?:${longDays.join('|')}), (?<day>\\d\\d)-${month}-(?<year>\\d\\d) ${time} GMT$`),
  // asctime: Sun Nov  6 08:49:37 1994
  new RegExp(`^(?:${days}) ${month} (?<day>[ \\d]\\d) ${time} (?<year>\\d{4})$`),
];

/**
 * Parses `Retry-After` (RFC 9110, 10.2.3): seconds, or a date.
 * @param values of all headers of that name; several are ambiguous, and count as none
 * @returns milliseconds from now, at most a day; undefined if it is missing or malformed
 */
export function retryAfterMs(values: readonly string[] = [], now: number): number | undefined {
  const [value, ...more] = values;
  if (value === undefined || more.length > 0) return undefined;
  const text = value.trim();
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : (dateOf(text, now) ?? NaN) - now;
  return Number.isNaN(milliseconds) ? undefined : Math.min(Math.max(0, milliseconds), MAX_DELAY);
}

function dateOf(text: string, now: number): number | undefined {
  const found = forms.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (found === undefined) return undefined;
  const { day, hour, minute, second } = found;
  const year = fullYear(found['year'] ?? '', now);
  const date = new Date(0);
  date.setUTCFullYear(year, months.indexOf(found['month'] ?? ''), Number(day));
  // A day that the month does not have becomes a day of the next month.
  const exists = date.getUTCDate() === Number(day) && Number(day) > 0;
  if (!exists || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
  return date.setUTCHours(Number(hour), Number(minute), Number(second));
}

/** Two digits mean the latest such year at most 50 years ahead (RFC 9110, 5.6.7). */
function fullYear(digits: string, now: number): number {
  if (digits.length === 4) return Number(digits);
  const latest = new Date(now).getUTCFullYear() + 50;
  return latest - ((latest - Number(digits)) % 100);
}
