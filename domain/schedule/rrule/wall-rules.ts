import { CalendarRule } from '../calendar-rule.ts';
import { civilOf, DAY, gcd, modulo, SECONDS_PER_DAY, sortedUnique, weekdayOf } from '../civil.ts';
import type { RruleParts } from './rrule-parts.ts';
import { RruleCalendar, type DayPhase } from './rrule-calendar.ts';
import type { SharedYears } from './rrule-year.ts';
import { expressionError } from '../schedule-error.ts';
import { positionIndexes, SetPositionRule } from './set-position-rule.ts';
import { SteppedTimes } from '../stepped-times.ts';
import { ClockTimes, ListedTimes, SlotTimes, type TimesOfDay } from '../times-of-day.ts';
import type { WallRule } from '../wall-rule.ts';

const MINUTES_PER_DAY = 1440;
const MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY;
/** A stepped rule with BY-parts must repeat its times of day within this many days. */
const MAX_STEPPED_DAYS = 366;

/** The most times of a day that BYSETPOS may choose from. */
const MAX_CHOICES = 5000;

const every = (length: number): number[] => Array.from({ length }, (_, value) => value);

/** A rule without its COUNT, UNTIL and zone. */
export interface BareRule {
  readonly rule: WallRule;
  /** An upper bound of the times per day. */
  readonly timesPerDay: number;
}

/**
 * Creates the wall rule of an RRULE.
 * @param start DTSTART's wall time, from which omitted parts are taken
 * @param from the first wall time at which the rule may fire
 * @throws ScheduleError if its evaluation cannot be bounded
 */
export function createRruleRule(written: RruleParts, start: number, from: number): BareRule {
  const parts = fillIn(written, start);
  return parts.freq === 'HOURLY' || parts.freq === 'MINUTELY'
    ? makeSubDaily(parts, start, from)
    : makeDaily(parts, parts.freq, start, from);
}

interface FilledParts extends RruleParts {
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
  readonly seconds: readonly number[];
}

/** Fills in omitted parts from the rule's start (RFC 5545, 3.3.10). */
function fillIn(parts: RruleParts, start: number): FilledParts {
  const day = Math.floor(start / DAY);
  const date = civilOf(day);
  const second = Math.floor(start / 1000) - day * SECONDS_PER_DAY;
  const { freq } = parts;
  const subDaily = freq === 'HOURLY' || freq === 'MINUTELY';
  const startHour = Math.floor(second / 3600);
  const startMinute = Math.floor(second / 60) % 60;
  let { months, monthDays, weekdays } = parts;
  const unnamed = parts.yearDays === null && monthDays === null && weekdays === null;
  const startWeekday = [{ weekday: weekdayOf(day), nth: 0 }];
  if (freq === 'YEARLY' && unnamed) {
    if (parts.weekNumbers !== null) {
      weekdays = startWeekday;
    } else {
      months ??= [date.month];
      monthDays = [date.day];
    }
  }
  if (freq === 'MONTHLY' && unnamed) monthDays = [date.day];
  if (freq === 'WEEKLY' && unnamed) weekdays = startWeekday;
  return {
    ...parts,
    months,
    monthDays,
    weekdays,
    hours: sortedUnique(parts.hours ?? (subDaily ? every(24) : [startHour])),
    minutes: sortedUnique(parts.minutes ?? (freq === 'MINUTELY' ? every(60) : [startMinute])),
    seconds: sortedUnique(parts.seconds ?? [second % 60]),
  };
}

function makeDaily(
  parts: FilledParts,
  unit: DayPhase['unit'],
  start: number,
  from: number,
): BareRule {
  const startDay = Math.floor(start / DAY);
  const calendar = new RruleCalendar(parts, { unit, interval: parts.interval, start: startDay });
  const { hours, minutes, seconds, positions } = parts;
  if (positions === null) {
    const times = new ClockTimes(hours, minutes, seconds);
    return { rule: new CalendarRule(calendar, times, from), timesPerDay: times.perDay };
  }
  const size = hours.length * minutes.length * seconds.length;
  if (size > MAX_CHOICES) {
    throw expressionError(
      `BYSETPOS must choose from at most ${MAX_CHOICES} times a day, got ${size}`,
    );
  }
  const times = combine(hours, minutes, seconds);
  if (unit === 'DAILY') {
    const chosen = positionIndexes(positions, times.length).map((index) => times[index] ?? 0);
    const listed = new ListedTimes(chosen);
    return { rule: new CalendarRule(calendar, listed, from), timesPerDay: listed.perDay };
  }
  const weekDays = new Set(parts.weekdays?.map((day) => day.weekday)).size;
  const weeks = Math.min(parts.weekNumbers?.length ?? 53, 53);
  const maxDays =
    unit === 'WEEKLY'
      ? weekDays
      : Math.min(calendar.maxDays * (unit === 'YEARLY' ? 12 : 1), weeks * 7);
  const shape = {
    unit,
    positions,
    calendar,
    weekStart: parts.weekStart,
    times,
    maxDays,
    interval: parts.interval,
    startDay,
    sameEveryPeriod: unit === 'WEEKLY' && parts.months === null,
  };
  return { rule: new SetPositionRule(shape, from), timesPerDay: times.length };
}

/** The slots (hours or minutes) of an elapsed rule while the zone has one offset. */
export interface Slots {
  /** The wall time at which a slot begins. */
  readonly first: number;
  /** Milliseconds between slots, in whole minutes. */
  readonly step: number;
  /** The seconds within a slot at which the rule fires. */
  readonly seconds: readonly number[];
}

/**
 * The wall rule of an HOURLY or MINUTELY RRULE while the zone has one offset: the slots on days
 * that match its day parts.
 * @param from the first wall time at which the rule may fire
 * @param years shared by all offsets of the zone
 * @throws ScheduleError if its evaluation cannot be bounded
 */
export function createSlotRule(
  parts: RruleParts,
  slots: Slots,
  from: number,
  years: SharedYears,
): WallRule {
  const first = Math.floor(slots.first / 60_000);
  const step = slots.step / 60_000;
  return slotRule(parts, { first, step, offsets: slots.seconds, accepts: null }, from, years).rule;
}

/** HOURLY and MINUTELY with BYHOUR or BYMINUTE: every n minutes that match the BY-parts. */
function makeSubDaily(parts: FilledParts, start: number, from: number): BareRule {
  const hourly = parts.freq === 'HOURLY';
  const step = parts.interval * (hourly ? 60 : 1);
  const startMinute = Math.floor(start / 60_000);
  const first = hourly ? startMinute - modulo(startMinute, 60) : startMinute;
  const offsets = offsetsWithin(parts, hourly);
  const accepts = acceptor(parts, hourly);
  const { rule, times } = slotRule(parts, { first, step, offsets, accepts }, from);
  return { rule, timesPerDay: times.perDay ?? Math.ceil(MINUTES_PER_DAY / step) * offsets.length };
}

/** Slots in whole minutes of the wall clock. */
interface MinuteSlots {
  /** The minute since 1970-01-01T00:00 at which a slot begins. */
  readonly first: number;
  readonly step: number;
  /** The seconds within a slot at which the rule fires. */
  readonly offsets: readonly number[];
  /** Whether a slot that begins at this second of the day matches; null accepts all. */
  readonly accepts: ((second: number) => boolean) | null;
}

function slotRule(
  parts: RruleParts,
  slots: MinuteSlots,
  from: number,
  years?: SharedYears,
): { readonly rule: WallRule; readonly times: TimesOfDay } {
  const { first, step } = slots;
  const wholeDays = step % MINUTES_PER_DAY === 0;
  // The calendar handles whole days of the interval; the times of day handle the rest.
  const interval = wholeDays ? step / MINUTES_PER_DAY : 1;
  const start = Math.floor(first / MINUTES_PER_DAY);
  const calendar = new RruleCalendar(parts, { unit: 'DAILY', interval, start }, years);
  const isDaily = wholeDays || MINUTES_PER_DAY % step === 0;
  const times = isDaily ? dailyTimes(slots) : steppedTimes(parts, slots);
  return { rule: new CalendarRule(calendar, times, from), times };
}

/** The seconds within an hour or minute at which the rule fires. */
function offsetsWithin(parts: FilledParts, hourly: boolean): number[] {
  const all = hourly ? combine([0], parts.minutes, parts.seconds) : [...parts.seconds];
  if (parts.positions === null) return all;
  return positionIndexes(parts.positions, all.length).map((index) => all[index] ?? 0);
}

/** Whether the BY-parts match an hour or minute, by the second of the day at which it begins. */
function acceptor(parts: FilledParts, hourly: boolean): ((second: number) => boolean) | null {
  const hours = new Set(parts.hours);
  const minutes = new Set(parts.minutes);
  if (hours.size === 24 && (hourly || minutes.size === 60)) return null;
  return (second) =>
    hours.has(Math.floor(second / 3600)) && (hourly || minutes.has(Math.floor(second / 60) % 60));
}

/** The times of a rule with the same times every day. */
function dailyTimes({ first, step, offsets, accepts }: MinuteSlots): TimesOfDay {
  const slots: number[] = [];
  const daily = Math.min(step, MINUTES_PER_DAY);
  for (let minute = modulo(first, daily); minute < MINUTES_PER_DAY; minute += daily) {
    if (accepts === null || accepts(minute * 60)) slots.push(minute * 60);
  }
  return new SlotTimes(slots, offsets);
}

function steppedTimes(parts: RruleParts, slots: MinuteSlots): TimesOfDay {
  const { first, step, offsets, accepts } = slots;
  const { months, yearDays, monthDays, weekdays } = parts;
  const limited =
    accepts !== null || [months, yearDays, monthDays, weekdays].some((part) => part !== null);
  const repeats = step / gcd(step, MINUTES_PER_DAY);
  if (limited && repeats > MAX_STEPPED_DAYS) {
    throw expressionError(
      `INTERVAL=${parts.interval} reaches the same time of day only every ${repeats} days; ` +
        `with BY-parts, at most ${MAX_STEPPED_DAYS} days are allowed`,
    );
  }
  if (limited && !reachesAny(slots, weekdays)) return new ListedTimes([]);
  return new SteppedTimes({ start: first * 60, step: step * 60, accepts, offsets });
}

/** Whether the rule ever reaches an accepted time of day on an accepted weekday. */
function reachesAny(
  { first, step, accepts }: MinuteSlots,
  weekdays: RruleParts['weekdays'],
): boolean {
  const rounds = MINUTES_PER_WEEK / gcd(step, MINUTES_PER_WEEK);
  for (let round = 0; round < rounds; round++) {
    const minute = first + round * step;
    const day = Math.floor(minute / MINUTES_PER_DAY);
    if (weekdays !== null && !weekdays.some((w) => w.weekday === weekdayOf(day))) continue;
    if (accepts === null || accepts(modulo(minute, MINUTES_PER_DAY) * 60)) return true;
  }
  return false;
}

function combine(
  hours: readonly number[],
  minutes: readonly number[],
  seconds: readonly number[],
): number[] {
  return hours.flatMap((h) => minutes.flatMap((m) => seconds.map((s) => h * 3600 + m * 60 + s)));
}
