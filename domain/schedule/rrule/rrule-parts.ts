import type { NthWeekday } from '../month-table.ts';
import { parseIcalTime, type IcalTime } from './recurrence.ts';
import { expressionError } from '../schedule-error.ts';

/** The allowed frequencies; SECONDLY is rejected. */
const frequencies = ['YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY'] as const;
export type Frequency = (typeof frequencies)[number];

/** The parsed parts of an RRULE; null if omitted. */
export interface RruleParts {
  readonly freq: Frequency;
  readonly interval: number;
  readonly count: number | null;
  readonly until: IcalTime | null;
  /** 0 is Sunday. */
  readonly weekStart: number;
  readonly months: readonly number[] | null;
  readonly weekNumbers: readonly number[] | null;
  readonly yearDays: readonly number[] | null;
  readonly monthDays: readonly number[] | null;
  /** `nth` 0 means every one of that weekday. */
  readonly weekdays: readonly NthWeekday[] | null;
  readonly hours: readonly number[] | null;
  readonly minutes: readonly number[] | null;
  readonly seconds: readonly number[] | null;
  readonly positions: readonly number[] | null;
}

const dayNames = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'];

const known = new Set(
  (
    'FREQ INTERVAL COUNT UNTIL WKST BYMONTH BYWEEKNO BYYEARDAY BYMONTHDAY BYDAY BYHOUR BYMINUTE ' +
    'BYSECOND BYSETPOS'
  ).split(' '),
);

/** Larger intervals have no practical use and cost evaluation time. */
const MAX_INTERVAL = 100_000;

/**
 * Parses the value of an RRULE and checks it against RFC 5545, 3.3.10.
 * @throws ScheduleError naming the part that is unknown, invalid or not allowed
 */
export function parseRruleParts(rule: string): RruleParts {
  const parts = splitParts(rule);
  const freq = parseFrequency(parts.get('FREQ'));
  const whole = (name: string, max: number): number | null => {
    const text = parts.get(name);
    return text === undefined ? null : wholeNumber(name, text, 1, max, false);
  };
  const list = (name: string, min: number, max: number, signed = false): number[] | null => {
    const text = parts.get(name);
    if (text === undefined) return null;
    return distinct(
      text.split(',').map((item) => wholeNumber(name, item, min, max, signed)),
      String,
    );
  };
  const until = parts.get('UNTIL');
  const weekStart = parts.get('WKST');
  const seconds = list('BYSECOND', 0, 60);
  const days = parts
    .get('BYDAY')
    ?.split(',')
    .map((item) => parseDay('BYDAY', item));
  const parsed: RruleParts = {
    freq,
    interval: whole('INTERVAL', MAX_INTERVAL) ?? 1,
    count: whole('COUNT', Infinity),
    until: until === undefined ? null : parseIcalTime('UNTIL', until, null),
    weekStart: weekStart === undefined ? 1 : parseDay('WKST', weekStart).weekday,
    months: list('BYMONTH', 1, 12),
    weekNumbers: list('BYWEEKNO', 1, 53, true),
    yearDays: list('BYYEARDAY', 1, 366, true),
    monthDays: list('BYMONTHDAY', 1, 31, true),
    weekdays: days === undefined ? null : distinct(days, ({ nth, weekday }) => `${nth}${weekday}`),
    hours: list('BYHOUR', 0, 23),
    minutes: list('BYMINUTE', 0, 59),
    // Without leap seconds, second 60 means 59 (RFC 5545, 3.3.12).
    seconds: seconds?.map((second) => Math.min(second, 59)) ?? null,
    positions: list('BYSETPOS', 1, 366, true),
  };
  if (weekStart !== undefined && parseDay('WKST', weekStart).nth !== 0) {
    throw expressionError(`WKST: "${weekStart}" is not a weekday`);
  }
  checkCombination(parsed, parts);
  return parsed;
}

/** Removes duplicates. */
function distinct<T>(values: readonly T[], key: (value: T) => string): T[] {
  return [...new Map(values.map((value) => [key(value), value])).values()];
}

function splitParts(rule: string): Map<string, string> {
  const parts = new Map<string, string>();
  for (const part of rule.replace(/;$/, '').split(';')) {
    const [name = '', value, ...rest] = part.trim().split('=');
    const key = name.toUpperCase();
    if (value === undefined || value === '' || rest.length > 0) {
      throw expressionError(`"${part}" is not of the form NAME=value`);
    }
    if (key === 'DTSTART' || key === 'EXDATE' || key === 'RDATE') {
      throw expressionError(`${key} must be on a line of its own, as in "${key}:20260329T090000"`);
    }
    if (!known.has(key)) throw expressionError(`unknown part ${name}`);
    if (parts.has(key)) throw expressionError(`${key} occurs twice`);
    parts.set(key, value.trim());
  }
  return parts;
}

function parseFrequency(text: string | undefined): Frequency {
  if (text === undefined) throw expressionError('has no FREQ');
  const name = text.toUpperCase();
  const freq = frequencies.find((known) => known === name);
  if (freq !== undefined) return freq;
  if (name === 'SECONDLY')
    throw expressionError('FREQ=SECONDLY is not allowed; the shortest is MINUTELY');
  throw expressionError(`FREQ: "${text}" is not one of ${frequencies.join(' ')}`);
}

function wholeNumber(
  name: string,
  text: string,
  min: number,
  max: number,
  signed: boolean,
): number {
  if (!(signed ? /^[+-]?\d+$/ : /^\d+$/).test(text)) {
    throw expressionError(`${name}: "${text}" is not a whole number`);
  }
  const value = Number(text);
  if (Math.abs(value) < min || Math.abs(value) > max) {
    if (max === Infinity) throw expressionError(`${name}: "${text}" is less than ${min}`);
    const range = signed ? `±${min}–${max}` : `${min}–${max}`;
    throw expressionError(`${name}: "${text}" is outside ${range}`);
  }
  return value;
}

function parseDay(name: string, text: string): NthWeekday {
  const found = /^([+-]?\d{1,2})?([A-Z]{2})$/i.exec(text);
  const weekday = dayNames.indexOf((found?.[2] ?? '').toUpperCase());
  const nth = Number(found?.[1] ?? 0);
  if (found === null || weekday < 0)
    throw expressionError(`${name}: "${text}" is not a weekday such as MO`);
  if (found[1] !== undefined && (nth === 0 || Math.abs(nth) > 53)) {
    throw expressionError(`${name}: the number of "${text}" is outside ±1–53`);
  }
  return { weekday, nth };
}

/** Rejects combinations that RFC 5545 or this service does not allow. */
function checkCombination(rule: RruleParts, parts: ReadonlyMap<string, string>): void {
  const { freq } = rule;
  if (rule.count !== null && rule.until !== null) throw expressionError('has both COUNT and UNTIL');
  if (rule.weekNumbers !== null && freq !== 'YEARLY') {
    throw expressionError(`BYWEEKNO is allowed only with FREQ=YEARLY, not ${freq}`);
  }
  if (rule.yearDays !== null && ['MONTHLY', 'WEEKLY', 'DAILY'].includes(freq)) {
    throw expressionError(`BYYEARDAY is not allowed with FREQ=${freq}`);
  }
  if (rule.monthDays !== null && freq === 'WEEKLY') {
    throw expressionError('BYMONTHDAY is not allowed with FREQ=WEEKLY');
  }
  if (rule.weekdays?.some((day) => day.nth !== 0) === true) {
    if (freq !== 'MONTHLY' && freq !== 'YEARLY') {
      throw expressionError(
        `BYDAY allows numbers (1MO) only with FREQ=MONTHLY and YEARLY, not ${freq}`,
      );
    }
    if (rule.weekNumbers !== null)
      throw expressionError('BYDAY allows no numbers (1MO) with BYWEEKNO');
  }
  const others = [...parts.keys()].filter((key) => key.startsWith('BY') && key !== 'BYSETPOS');
  if (rule.positions !== null && others.length === 0) {
    throw expressionError('BYSETPOS needs another BY-part to choose from');
  }
}
