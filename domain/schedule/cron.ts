import { BoundedCache } from './bounded-cache.ts';
import { CalendarRule } from './calendar-rule.ts';
import {
  dayOfMonthShape,
  dayOfWeekShape,
  hourShape,
  minuteShape,
  monthShape,
  parseCronField,
  secondShape,
  type CronField,
} from './cron-field.ts';
import { allDays, MonthTable, nthWeekdayDay, weekdayDays } from './month-table.ts';
import { expressionError } from './schedule-error.ts';
import { ianaZoneOf } from './zone-names.ts';
import { ClockTimes } from './times-of-day.ts';
import type { DayCalendar, WallRule } from './wall-rule.ts';

const aliases: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

/** A compiled cron expression. */
export interface CronRule {
  readonly rule: WallRule;
  /** Whether it follows elapsed time at clock changes, because its hours are `*` or stepped. */
  readonly elapsed: boolean;
}

/** The most compiled expressions in the cache. Most tasks share a few expressions. */
const MAX_CACHED = 1_000;
const cache = new BoundedCache<CronRule>(MAX_CACHED);

/**
 * Compiles a cron expression: five fields, six with seconds first, or an @alias. A date that never
 * occurs (30 February) compiles to a rule without fires. Equal expressions may share one immutable
 * rule.
 * @throws ScheduleError naming the invalid field and item
 */
export function compileCron(expression: string): CronRule {
  const text = expression.trim();
  return cache.get(text, () => compile(text));
}

/** The six fields of a cron expression. */
export interface CronFields {
  readonly second: CronField;
  readonly minute: CronField;
  readonly hour: CronField;
  readonly dayOfMonth: CronField;
  readonly month: CronField;
  readonly dayOfWeek: CronField;
}

/**
 * Parses a cron expression or an @alias; with five fields, the second is 0.
 * @throws ScheduleError as {@link compileCron}
 */
export function parseCron(expression: string): CronFields {
  const text = expression.trim();
  const zone = /^(CRON_TZ|TZ)\s*=\s*(?:"([^"]*)"|(\S*))/i.exec(text);
  if (zone !== null) {
    const [, name = '', quoted, bare = ''] = zone;
    const value = quoted ?? bare;
    const what = value === '' ? 'the zone' : `"${ianaZoneOf(value) ?? value}"`;
    throw expressionError(
      `${name}= is not allowed in a cron expression; set the field timezone to ${what}`,
    );
  }
  const alias = aliases.get(text.toLowerCase());
  if (alias === undefined && text.startsWith('@')) {
    const known = [...aliases.keys()].join(' ');
    throw expressionError(`"${text}" is not one of ${known}`);
  }
  const fields = (alias ?? text).split(/\s+/);
  if (fields.length === 5) fields.unshift('0');
  if (fields.length !== 6) {
    const found = text === '' ? 0 : fields.length;
    throw expressionError(
      `a cron expression has 5 fields (minute hour day-of-month month day-of-week), ` +
        `or 6 with seconds first, got ${found}`,
    );
  }
  const [second = '', minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] = fields;
  return {
    second: parseCronField(second, secondShape),
    minute: parseCronField(minute, minuteShape),
    hour: parseCronField(hour, hourShape),
    dayOfMonth: parseCronField(dayOfMonth, dayOfMonthShape),
    month: parseCronField(month, monthShape),
    dayOfWeek: parseCronField(dayOfWeek, dayOfWeekShape),
  };
}

/** Whether one matching day field suffices: neither begins with * (crontab(5)). */
export function eitherDay({ dayOfMonth, dayOfWeek }: CronFields): boolean {
  return !dayOfMonth.star && !dayOfWeek.star;
}

function compile(text: string): CronRule {
  const fields = parseCron(text);
  const { second: seconds, minute: minutes, hour: hours } = fields;
  const days = new CronCalendar(fields);
  const times = new ClockTimes(hours.values, minutes.values, seconds.values);
  const elapsed = hours.stepped || hours.values.size === 24;
  return { rule: new CalendarRule(days, times), elapsed };
}

/** The days that match cron's three day fields. */
class CronCalendar implements DayCalendar {
  readonly period = 4800;
  readonly #months: ReadonlySet<number>;
  readonly #table: MonthTable;

  constructor(fields: CronFields) {
    const { dayOfMonth, month, dayOfWeek } = fields;
    this.#months = month.values;
    let weekdays = 0;
    for (const day of dayOfWeek.values) weekdays |= 1 << day;
    let monthDays = 0;
    for (const day of dayOfMonth.values) monthDays |= 1 << (day - 1);
    const either = eitherDay(fields);
    this.#table = new MonthTable((length, firstWeekday) => {
      let byDate = monthDays & allDays(length);
      if (dayOfMonth.lastDay) byDate |= 1 << (length - 1);
      let byWeekday = weekdayDays(length, firstWeekday, weekdays);
      for (const wanted of dayOfWeek.nth) byWeekday |= nthWeekdayDay(length, firstWeekday, wanted);
      return either ? byDate | byWeekday : byDate & byWeekday;
    });
  }

  mask(year: number, month: number): number {
    return this.#table.mask(year, month);
  }

  daysOfYear(): null {
    return null;
  }

  nextMonth(month: number): number {
    let found = month;
    while (!this.#months.has((found % 12) + 1)) found++;
    return found;
  }

  previousMonth(month: number): number {
    let found = month;
    while (found > 0 && !this.#months.has((found % 12) + 1)) found--;
    return found;
  }
}
