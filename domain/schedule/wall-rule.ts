/**
 * A rule in wall-clock time without a zone: a set of wall times (milliseconds as from `Date.UTC`,
 * always whole seconds). `zoned-fires.ts` applies a zone's clock changes.
 */
export interface WallRule {
  /** The first wall time ≥ the given one; null if there is none up to the end of the year 9999. */
  next(wall: number): number | null;
  /** The last wall time ≤ the given one; null if there is none back to the rule's start. */
  previous(wall: number): number | null;
  /** The number of wall times in [from, to). */
  count(from: number, to: number): number;
}

/** The days of the calendar on which a rule may fire. */
export interface DayCalendar {
  /** The matching days of a month (1–12); bit 0 is the first day. */
  mask(year: number, month: number): number;
  /** The number of matching days of a year; null if only its months can tell. */
  daysOfYear(year: number): number | null;
  /** The first month ≥ the given one (`year * 12 + month - 1`) that may have matching days. */
  nextMonth(month: number): number;
  /** Months until the pattern repeats: 4,800 (whole weeks), or more with an interval. */
  readonly period: number;
  /** The last month ≤ the given one that may have matching days. */
  previousMonth(month: number): number;
}
