import { toIso, type Instant } from '../../domain/clock.ts';
import { DAY, HOUR } from '../../domain/schedule/civil.ts';
import { zoneOf, type Zone } from '../../domain/schedule/zone.ts';
import { QUARTER } from '../views/statistics-days.ts';

/** A span of time with its own figures. Both ends are full quarter hours. */
export interface Bucket {
  readonly start: Instant;
  /** Exclusive. */
  readonly end: Instant;
  /** The day in the zone, `YYYY-MM-DD`. */
  readonly date: string;
}

/** The period that statistics cover, in a time zone. */
export interface Period {
  readonly zone: Zone;
  readonly start: Instant;
  /** Exclusive; in the future if the last day or quarter hour is not over. */
  readonly end: Instant;
  /** The length in days, as requested. */
  readonly length: number;
  /** The days that overlap it, ascending, each cut to it. */
  readonly days: readonly Bucket[];
}

/** The days of a zone up to today. */
export function lastDays(zone: Zone, days: number, now: Instant): Period {
  const today = localDay(zone, now);
  return periodOf(zone, days, startOf(zone, today - days + 1), startOf(zone, today + 1));
}

/** The last hours, from the full quarter hour before them. */
export function lastHours(zone: Zone, hours: number, now: Instant): Period {
  return periodOf(zone, hours / 24, floor(now - hours * HOUR), floor(now) + QUARTER);
}

/** The hours of a period by the clock of its zone. They are shorter where the clock changes by less than an hour. */
export function hoursOf({ zone, start, end }: Period): readonly Bucket[] {
  const hours: Bucket[] = [];
  for (let at = start; at < end;) {
    const into = (((at + zone.offsetAt(at)) % HOUR) + HOUR) % HOUR;
    const next = Math.min(end, at + HOUR - into);
    hours.push({ start: at, end: next, date: dateOf(localDay(zone, at)) });
    at = next;
  }
  return hours;
}

/** The zone with an IANA name; null if unknown. Default: UTC. */
export const zoneNamed = (name = 'UTC'): Zone | null => zoneOf(name);

function periodOf(zone: Zone, length: number, start: Instant, end: Instant): Period {
  const days: Bucket[] = [];
  for (let at = start, day = localDay(zone, start); at < end; day += 1) {
    const next = Math.min(end, startOf(zone, day + 1));
    // A day that the zone skipped has no time.
    if (next > at) days.push({ start: at, end: next, date: dateOf(day) });
    at = next;
  }
  return { zone, length, start, end, days };
}

const localDay = (zone: Zone, at: Instant): number => Math.floor((at + zone.offsetAt(at)) / DAY);

/** Midnight. If the clock skips midnight, the first instant after it. */
const startOf = (zone: Zone, day: number): Instant => floor(zone.resolve(day * DAY).at);

const floor = (at: Instant): Instant => Math.floor(at / QUARTER) * QUARTER;

const dateOf = (day: number): string => toIso(day * DAY).slice(0, 10);
