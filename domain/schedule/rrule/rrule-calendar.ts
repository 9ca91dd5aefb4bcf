import {
  civilOf,
  dayOf,
  gcd,
  highestBit,
  lowestBit,
  MAX_YEAR,
  modulo,
  monthLength,
  weekdayOf,
} from '../civil.ts';
import type { RruleParts } from './rrule-parts.ts';
import { SharedYears, type RruleYears } from './rrule-year.ts';
import type { DayCalendar } from '../wall-rule.ts';
import { spend } from '../work-limit.ts';

/** The periods that INTERVAL selects: every n-th year, month, week or day from the start. */
export interface DayPhase {
  readonly unit: 'YEARLY' | 'MONTHLY' | 'WEEKLY' | 'DAILY';
  readonly interval: number;
  /** The day on which the rule starts. */
  readonly start: number;
}

const periodsOf400Years = { YEARLY: 400, MONTHLY: 4800, WEEKLY: 20_871, DAILY: 146_097 } as const;

/** Costs, in work steps, of the next month, of the next month with a long interval, and of a month's days. */
const SEEK_COST = 4;
const LONG_SEEK_COST = 25;
const PHASE_COST = 10;
/** From this many days on, an interval skips whole months. */
const MONTH_SKIPPING_DAYS = 62;

/** The days that match an RRULE's day parts, within the periods selected by INTERVAL. */
export class RruleCalendar implements DayCalendar {
  readonly period: number;
  readonly #phase: DayPhase;
  readonly #years: RruleYears;
  readonly #startYear: number;
  readonly #startMonth: number;
  /** The first day of a selected week or day. */
  readonly #startDay: number;
  /** Days between such days; 0 if INTERVAL counts years or months, or is 1. */
  readonly #step: number;

  constructor(parts: RruleParts, phase: DayPhase, years = new SharedYears(parts)) {
    const start = civilOf(phase.start);
    const { interval, unit } = phase;
    this.#phase = phase;
    // The calendar repeats every 400 years. The rule repeats after the first multiple of that in
    // which its interval also repeats.
    this.period = (4800 * interval) / gcd(interval, periodsOf400Years[unit]);
    this.#startYear = start.year;
    this.#startMonth = start.year * 12 + start.month - 1;
    this.#startDay =
      unit === 'WEEKLY'
        ? dayOfWeek(weekOf(phase.start, parts.weekStart), parts.weekStart)
        : phase.start;
    const days = unit === 'DAILY' ? interval : unit === 'WEEKLY' ? interval * 7 : 0;
    this.#step = interval === 1 ? 0 : days;
    const isOneWeekday = unit === 'DAILY' && interval % 7 === 0;
    this.#years = years.of(isOneWeekday ? weekdayOf(phase.start) : null);
  }

  mask(year: number, month: number): number {
    const mask = this.#years.of(year).masks[month - 1] ?? 0;
    return mask === 0 || this.#step === 0 ? mask : mask & this.#inPhase(dayOf(year, month, 1));
  }

  daysOfYear(year: number): number | null {
    return this.#phase.interval === 1 ? this.#years.of(year).count : null;
  }

  /** An upper bound of the matching days of a month. */
  get maxDays(): number {
    return this.#years.maxDays;
  }

  nextMonth(month: number): number {
    let found = month;
    while (found < (MAX_YEAR + 1) * 12) {
      spend(SEEK_COST);
      const before = found;
      found = this.#phaseMonth(found, 1);
      const year = Math.floor(found / 12);
      const months = this.#years.of(year).months >>> (found % 12);
      if (months === 0) found = (year + 1) * 12;
      else found += lowestBit(months);
      if (found === before) break;
    }
    return found;
  }

  previousMonth(month: number): number {
    let found = month;
    while (found >= 0) {
      spend(SEEK_COST);
      const before = found;
      found = this.#phaseMonth(found, -1);
      if (found < 0) break;
      const year = Math.floor(found / 12);
      const months = this.#years.of(year).months & ((2 << (found % 12)) - 1);
      found = months === 0 ? year * 12 - 1 : year * 12 + highestBit(months);
      if (found === before) break;
    }
    return found;
  }

  /** The nearest month in a direction that overlaps a selected period. */
  #phaseMonth(month: number, direction: 1 | -1): number {
    const { unit, interval } = this.#phase;
    if (interval === 1) return month;
    if (unit === 'YEARLY') {
      const year = Math.floor(month / 12);
      const off = modulo(direction * (this.#startYear - year), interval);
      return off === 0 ? month : (year + direction * off) * 12 + (direction > 0 ? 0 : 11);
    }
    if (unit === 'MONTHLY') {
      return month + direction * modulo(direction * (this.#startMonth - month), interval);
    }
    return this.#step < MONTH_SKIPPING_DAYS ? month : this.#phaseDayMonth(month, direction);
  }

  #phaseDayMonth(month: number, direction: 1 | -1): number {
    spend(LONG_SEEK_COST);
    const year = Math.floor(month / 12);
    const first = dayOf(year, (month % 12) + 1, 1);
    const last = first + monthLength(year, (month % 12) + 1) - 1;
    const periodStart = last - modulo(last - this.#startDay, this.#step);
    // The last day of a week counts too, because it may have begun in the month before.
    const end = this.#phase.unit === 'DAILY' ? periodStart : periodStart + 6;
    if (end >= first) return month;
    const found = civilOf(direction > 0 ? periodStart + this.#step : end);
    return found.year * 12 + found.month - 1;
  }

  /** The days of a month within selected weeks or days, as bits. */
  #inPhase(first: number): number {
    spend(PHASE_COST);
    const length = this.#phase.unit === 'DAILY' ? 1 : 7;
    let mask = 0;
    // Starts with the period that contains or precedes the first of the month.
    for (let day = -modulo(first - this.#startDay, this.#step); day < 31; day += this.#step) {
      if (day >= 0) mask |= ((1 << length) - 1) << day;
      else if (day > -length) mask |= ((1 << length) - 1) >>> -day;
    }
    return mask;
  }
}

/** The number of a day's week, from an arbitrary origin; `weekStart` 0 is Sunday. */
export function weekOf(day: number, weekStart: number): number {
  return Math.floor((day + 4 - weekStart) / 7);
}

/** The first day of a week. */
export function dayOfWeek(week: number, weekStart: number): number {
  return week * 7 + weekStart - 4;
}
