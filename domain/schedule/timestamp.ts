import type { Instant } from '../clock.ts';
import { DAY, LAST_INSTANT, monthLength } from './civil.ts';
import { unknownZoneMessage } from './zone-names.ts';
import { zoneOf, type ResolvedWall } from './zone.ts';

const pattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/;

/** A parsed ISO 8601 timestamp. */
export interface WrittenTime {
  readonly wall: number;
  /** In milliseconds; null if the timestamp has none. */
  readonly offset: number | null;
  /** A date without a time of day; `wall` is its midnight. */
  readonly dateOnly: boolean;
}

/**
 * The meaning of a date without a time of day: the first or last millisecond of that day, or the
 * first one after it (for an exclusive bound).
 */
export type DayEdge = 'first' | 'last' | 'after';

/** An invalid timestamp, with its fault. */
export class TimestampError extends Error {
  override readonly name = 'TimestampError';
}

/**
 * The wall time of a date and time of day.
 * @throws TimestampError if there is no such date or time
 */
export function wallOf(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
  millisecond = 0,
): number {
  if (year < 1) throw new TimestampError('the year 0 is not supported');
  if (month < 1 || month > 12) throw new TimestampError(`there is no month ${month}`);
  if (day < 1 || day > monthLength(year, month)) {
    throw new TimestampError(`there is no day ${day} in month ${month} of ${year}`);
  }
  if (hour > 23) throw new TimestampError(`there is no hour ${hour}`);
  if (minute > 59) throw new TimestampError(`there is no minute ${minute}`);
  if (second > 59) throw new TimestampError(`there is no second ${second}`);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, millisecond);
  return date.getTime();
}

/**
 * Parses an ISO 8601 timestamp in extended form. Seconds and their fraction are optional, and a date alone means its
 * midnight. Digits beyond milliseconds are dropped.
 * @throws TimestampError naming the fault
 */
export function parseTimestamp(text: string): WrittenTime {
  const found = pattern.exec(text.trim());
  if (found === null) {
    throw new TimestampError(
      `"${text}" is not an ISO 8601 timestamp such as 2026-03-29T09:00:00+02:00`,
    );
  }
  const number = (index: number): number => Number(found[index] ?? 0);
  const millisecond = Number((found[7] ?? '').padEnd(3, '0').slice(0, 3));
  const wall = wallOf(
    number(1),
    number(2),
    number(3),
    number(4),
    number(5),
    number(6),
    millisecond,
  );
  const offset = found[8] === undefined ? null : readOffset(found[8]);
  return { wall, offset, dateOnly: found[4] === undefined };
}

/**
 * The instant of an ISO 8601 timestamp, and how the zone's clock changes affect it. An offset in the timestamp
 * overrides the zone.
 * @param edge the meaning of a date without a time
 * @throws TimestampError if the string is not a timestamp, if there is neither an offset nor a zone, or if the zone is
 *   unknown
 */
export function resolveTimestamp(
  text: string,
  timezone: string | null,
  edge: DayEdge = 'first',
): ResolvedWall {
  const { wall, offset, dateOnly } = parseTimestamp(text);
  if (offset !== null) return { at: wall - offset, kind: 'normal', again: null };
  if (timezone === null) {
    throw new TimestampError(`"${text}" has no offset from UTC, such as Z or +02:00`);
  }
  const zone = zoneOf(timezone);
  if (zone === null) throw new TimestampError(unknownZoneMessage(timezone));
  if (!dateOnly || edge === 'first') return zone.resolve(wall);
  const next = zone.resolve(wall + DAY).at;
  // LAST_INSTANT ends the last day in every zone.
  const at = Math.min(edge === 'last' ? next - 1 : next, LAST_INSTANT);
  return { at, kind: 'normal', again: null };
}

/** Like {@link resolveTimestamp}, but returns only the instant. */
export function parseInstant(text: string, timezone: string | null, edge?: DayEdge): Instant {
  return resolveTimestamp(text, timezone, edge).at;
}

function readOffset(text: string): number {
  if (text === 'Z' || text === 'z') return 0;
  const hours = Number(text.slice(1, 3));
  const minutes = Number(text.slice(3).replace(':', '') || 0);
  const offset = hours * 3_600_000 + minutes * 60_000;
  if (minutes > 59 || offset > DAY - 1) throw new TimestampError(`there is no offset ${text}`);
  return text.startsWith('-') ? -offset : offset;
}
