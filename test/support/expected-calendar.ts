/**
 * When a rule should fire in a zone, computed from `Intl` and the rules of
 * `docs/reference/schedules.md` alone. It uses no code of the service's schedules. Instants are
 * milliseconds since 1970.
 */

/** A calendar day. */
export interface CalendarDay {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  /** 0 is Sunday. */
  readonly weekday: number;
  /** The number of days in the month. */
  readonly length: number;
}

/** A rule that names wall times: each fires once. */
export interface FixedRule {
  readonly zone: string;
  readonly on: (day: CalendarDay) => boolean;
  /** `HH:MM`. */
  readonly times: readonly string[];
}

const DAY = 86_400_000;
const MINUTE = 60_000;

const formats = new Map<string, Intl.DateTimeFormat>();

/** The wall time of an instant, as the instant that has it in UTC. */
export function wallAt(zone: string, instant: number): number {
  let format = formats.get(zone);
  if (format === undefined) {
    const numeric = 'numeric' as const;
    const date = { year: numeric, month: numeric, day: numeric } as const;
    const time = { hour: numeric, minute: numeric, second: numeric, hourCycle: 'h23' } as const;
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, ...date, ...time });
    formats.set(zone, format);
  }
  const parts = new Map(
    format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]),
  );
  const of = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? Number.NaN;
  return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
}

/**
 * The instant of a wall time: the first if it is repeated. If it is skipped, the offset before the
 * change applies.
 */
export function instantOf(zone: string, wall: number): number {
  const before = wallAt(zone, wall - DAY) - (wall - DAY);
  const after = wallAt(zone, wall + DAY) - (wall + DAY);
  const candidates = [wall - before, wall - after].sort((a, b) => a - b);
  return candidates.find((instant) => wallAt(zone, instant) === wall) ?? wall - before;
}

/**
 * The fires of a fixed rule after an instant, up to and including another; two wall times at the
 * same instant fire once.
 */
export function fixedFires(rule: FixedRule, after: number, upTo: number): number[] {
  const fires = new Set<number>();
  const first = Math.floor(wallAt(rule.zone, after) / DAY) * DAY - DAY;
  for (let midnight = first; midnight <= upTo + 2 * DAY; midnight += DAY) {
    if (!rule.on(dayOf(midnight))) continue;
    for (const time of rule.times) {
      const [hours = 0, minutes = 0] = time.split(':').map(Number);
      const instant = instantOf(rule.zone, midnight + (hours * 60 + minutes) * MINUTE);
      if (instant > after && instant <= upTo) fires.add(instant);
    }
  }
  return [...fires].sort((a, b) => a - b);
}

/**
 * The fires of a rule that follows elapsed time: each minute with a matching wall time, as often as
 * it occurs.
 */
export function elapsedFires(
  zone: string,
  fits: (wall: { readonly hour: number; readonly minute: number }) => boolean,
  after: number,
  upTo: number,
): number[] {
  const fires: number[] = [];
  for (let at = (Math.floor(after / MINUTE) + 1) * MINUTE; at <= upTo; at += MINUTE) {
    const wall = new Date(wallAt(zone, at));
    if (fits({ hour: wall.getUTCHours(), minute: wall.getUTCMinutes() })) fires.push(at);
  }
  return fires;
}

function dayOf(midnight: number): CalendarDay {
  const date = new Date(midnight);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1];
  const length = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return { year, month, day: date.getUTCDate(), weekday: date.getUTCDay(), length };
}
