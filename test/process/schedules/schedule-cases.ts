import { zoneOf } from '../../../domain/schedule/zone.ts';
import { randomBy } from '../../support/random.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * Zones with all kinds of clock changes and with none. Excludes zones whose rules differ between
 * the databases.
 */
export const zones = [
  'UTC',
  'America/New_York',
  'America/Los_Angeles',
  'America/St_Johns',
  'America/Sao_Paulo',
  'America/Havana',
  'America/Santiago',
  'America/Asuncion',
  'Europe/Berlin',
  'Europe/London',
  'Europe/Istanbul',
  'Africa/Johannesburg',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Asia/Beirut',
  'Asia/Tehran',
  'Asia/Tokyo',
  'Australia/Lord_Howe',
  'Australia/Sydney',
  'Pacific/Auckland',
  'Pacific/Chatham',
  'Pacific/Kiritimati',
] as const;

/** The earliest start of rules, and the end of the comparison of zones. */
export const SPAN = { from: Date.UTC(2015, 0, 1), to: Date.UTC(2029, 0, 1) } as const;

/** A rule in the form of the other schedulers. */
export interface ScheduleCase {
  readonly kind: 'rrule' | 'cron';
  /** In the form of the service. */
  readonly expr: string;
  readonly zone: string;
  readonly elapsed: boolean;
  readonly count: number;
  /** Seconds since 1970; fires are compared after it. */
  readonly after: number;
  /** DTSTART without its zone, and only the RRULE. */
  readonly start?: string;
  readonly rule?: string;
  readonly freq?: string;
  readonly interval?: number;
  readonly minutes?: readonly number[];
  readonly limits?: Readonly<Record<string, readonly number[]>>;
  readonly day_or?: boolean;
}

const weekdays = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

/** Generates rules, the same for the same seed. */
class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomBy(seed);
  }

  whole(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }

  one<T>(values: readonly T[]): T {
    return values[this.whole(0, values.length - 1)] as T;
  }

  some(min: number, max: number, most = 3): number[] {
    const found = new Set<number>();
    for (let n = this.whole(1, most); n > 0; n -= 1) found.add(this.whole(min, max));
    return [...found].sort((a, b) => a - b);
  }

  chance(of: number): boolean {
    return this.#random() < of;
  }
}

/** Generates rules; half of them by the hour or minute. @param count how many */
export function drawCases(seed: number, count: number): ScheduleCase[] {
  const dice = new Dice(seed);
  const draws = [subDailyCase, subDailyCase, dailyCase, cronCase];
  return Array.from({ length: count }, (_, index) => {
    const zone = zones[index % zones.length] ?? 'UTC';
    return (draws[Math.floor(index / zones.length) % draws.length] ?? cronCase)(dice, zone);
  });
}

/** A time in the span, usually shortly before a clock change of the zone. */
function instantIn(dice: Dice, name: string, lead: number): number {
  const some = dice.whole(SPAN.from / HOUR, Date.UTC(2027, 0, 1) / HOUR) * HOUR;
  const zone = zoneOf(name);
  if (zone === null) throw new Error(`no zone ${name}`);
  let segment = zone.segmentAt(some);
  while (segment.offset === segment.before && segment.end < SPAN.to) {
    segment = zone.segmentAt(segment.end);
  }
  const change = segment.offset === segment.before ? some : segment.start;
  return change - dice.whole(0, lead / 1000) * 1000;
}

function wallText(instant: number, zone: string): string {
  const offset = zoneOf(zone)?.offsetAt(instant) ?? 0;
  return new Date(instant + offset).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
}

interface Drawn {
  readonly freq: string;
  readonly interval: number;
  readonly parts: readonly string[];
}

function rruleCase(
  { freq, interval, parts }: Drawn,
  zone: string,
  begun: number,
  more: Pick<ScheduleCase, 'elapsed' | 'count'> & Partial<ScheduleCase>,
): ScheduleCase {
  const rule = [`FREQ=${freq}`, `INTERVAL=${interval}`, ...parts].join(';');
  const start = wallText(begun, zone);
  const expr = `DTSTART;TZID=${zone}:${start}\nRRULE:${rule}`;
  // More than a day before the start, so that both passes of a repeated hour are included.
  const after = Math.floor(begun / 1000) - 90_000;
  const bare = { minutes: [], limits: {} };
  return { kind: 'rrule', expr, zone, after, start, rule, freq, interval, ...bare, ...more };
}

/** HOURLY and MINUTELY rules with an INTERVAL, in elapsed time or at fixed wall-clock times. */
function subDailyCase(dice: Dice, zone: string): ScheduleCase {
  const freq = dice.one(['HOURLY', 'MINUTELY']);
  const hourly = freq === 'HOURLY';
  const interval = hourly
    ? dice.one([1, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 23, 24, 25, 36, 48, 168])
    : dice.one([1, 5, 7, 10, 13, 15, 20, 30, 45, 60, 90, 120, 360, 720, 1440]);
  const step = interval * (hourly ? HOUR : 60_000);
  const begun = instantIn(dice, zone, Math.max(6 * HOUR, Math.min(4 * step, 20 * DAY)));
  const count = Math.min(120, Math.max(24, Math.ceil((12 * HOUR) / step)));
  const limits: Record<string, readonly number[]> = {};
  const parts: string[] = [];
  if (dice.chance(0.3)) {
    limits['BYDAY'] = dice.some(0, 6, 5);
    parts.push(`BYDAY=${limits['BYDAY'].map((day) => weekdays[day] ?? '').join()}`);
  }
  if (dice.chance(0.1)) {
    limits['BYMONTHDAY'] = [...new Set([...dice.some(1, 28), 29, 30, 31, 1, 2])];
    parts.push(`BYMONTHDAY=${limits['BYMONTHDAY'].join()}`);
  }
  if (dice.chance(0.3)) {
    // A step of a whole day matches only one hour.
    const hours =
      step % DAY === 0 ? Array.from({ length: 24 }, (_, hour) => hour) : dice.some(0, 23, 6);
    const named = hourly || dice.chance(0.5) ? [`BYHOUR=${hours.join()}`] : [];
    const minutes =
      named.length === 0 || dice.chance(0.3) ? [`BYMINUTE=${dice.some(0, 59, 4).join()}`] : [];
    const drawn = {
      freq,
      interval: hourly ? Math.min(interval, 3) : 1,
      parts: [...parts, ...named, ...minutes],
    };
    return rruleCase(drawn, zone, begun, { elapsed: false, count: 30 });
  }
  if (hourly && dice.chance(0.25) && zone !== 'Australia/Lord_Howe') {
    // How wall-clock minutes are placed in half-hour shifts is the service's own choice.
    const minutes = dice.some(0, 59, 3);
    const drawn = { freq, interval, parts: [...parts, `BYMINUTE=${minutes.join()}`] };
    return rruleCase(drawn, zone, begun, { elapsed: true, count, limits, minutes });
  }
  return rruleCase({ freq, interval, parts }, zone, begun, { elapsed: true, count, limits });
}

/** Rules by the day, week, month and year, with several times a day. */
function dailyCase(dice: Dice, zone: string): ScheduleCase {
  const freq = dice.one(['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']);
  const parts: string[] = [];
  if (freq === 'DAILY' && dice.chance(0.3)) parts.push(`BYMONTH=${dice.some(1, 12, 5).join()}`);
  if (freq === 'WEEKLY' && dice.chance(0.7)) {
    parts.push(
      `BYDAY=${dice
        .some(0, 6, 4)
        .map((day) => weekdays[day] ?? '')
        .join()}`,
    );
  }
  if (freq === 'MONTHLY') {
    const nth = `${dice.one(['1', '2', '3', '4', '-1', '-2'])}${dice.one(weekdays)}`;
    parts.push(
      dice.one([`BYMONTHDAY=${dice.some(1, 28).join()}`, 'BYMONTHDAY=-1', `BYDAY=${nth}`]),
    );
  }
  if (freq === 'YEARLY') {
    const month = `BYMONTH=${dice.some(1, 12).join()};BYMONTHDAY=${dice.some(1, 28).join()}`;
    parts.push(dice.one([month, `BYYEARDAY=${dice.some(1, 365).join()}`]));
  }
  if (dice.chance(0.6)) parts.push(`BYHOUR=${dice.some(0, 4, 3).join()}`);
  if (dice.chance(0.5)) parts.push(`BYMINUTE=${dice.some(0, 59, 3).join()}`);
  const begun = instantIn(dice, zone, freq === 'DAILY' ? 5 * DAY : 60 * DAY);
  const drawn = { freq, interval: dice.whole(1, freq === 'DAILY' ? 4 : 2), parts };
  return rruleCase(drawn, zone, begun, { elapsed: false, count: 24 });
}

/** Cron expressions, in elapsed time or at fixed wall-clock times. */
function cronCase(dice: Dice, zone: string): ScheduleCase {
  const minute = dice.one(['0', '*/15', '30', '*', '7-59/13', dice.some(0, 59).join()]);
  const stepped = ['*', '*/2', '*/3', '*/5', '*/12', '1-23/2', '0-23'];
  const listed = ['0', '1', '2', '3', '1,2', '0-4', '23', dice.some(0, 23, 5).join()];
  const hour = dice.one([...stepped, ...listed]);
  const elapsed = hour === '*' || hour.includes('/') || hour === '0-23';
  const dayOfMonth = dice.one(['*', '*', '*', '1-15', '*/2', 'L', dice.some(1, 28, 6).join()]);
  const month = dice.one(['*', '*', '*', '*/2', 'MAR-NOV', dice.some(1, 12, 5).join()]);
  const names = ['0', '7', 'SUN', '5-7', 'FRI-SUN', '1-5', 'MON-FRI', '0-7', '7-7', '1-7/2', '5#2'];
  const weekday = dice.one(['*', '*', '*', ...names]);
  const expr = [minute, hour, dayOfMonth, month, weekday].join(' ');
  const after = Math.floor(instantIn(dice, zone, 2 * DAY) / 1000);
  // A field that begins with * only narrows the other (crontab(5)).
  const day_or = !dayOfMonth.startsWith('*') && !weekday.startsWith('*');
  return { kind: 'cron', expr, zone, elapsed, count: 30, after, day_or };
}
