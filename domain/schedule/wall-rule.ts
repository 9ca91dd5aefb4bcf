/**
 * A rule in wall-clock time, without a zone: a set of walls (milliseconds that `Date.UTC` would
 * give, always whole seconds). What a zone's clock changes do to them is `zoned-fires.ts`.
 */
export interface WallRule {
  /** The first wall ≥ the one given; null when there is none up to the end of the year 9999. */
  next(wall: number): number | null;
  /** The last wall ≤ the one given; null when there is none back to the rule's start. */
  previous(wall: number): number | null;
  /** How many walls are in [from, to). */
  count(from: number, to: number): number;
}

/** The days of the calendar on which a rule may fire. */
export interface DayCalendar {
  /** The matching days of a month (1–12): bit 0 is the first. */
  mask(year: number, month: number): number;
  /** How many days of a year match; null where only its months tell. */
  daysOfYear(year: number): number | null;
  /**
   * The first month ≥ the one given that may have matching days. Months are counted as
   * `year * 12 + month - 1`.
   */
  nextMonth(month: number): number;
  /**
   * After how many months the pattern repeats: 4,800 (400 years are a whole number of weeks) unless
   * the rule has an interval of its own, which makes it longer: Infinity.
   */
  readonly period: number;
  /** The last month ≤ the one given that may have matching days. */
  previousMonth(month: number): number;
}
