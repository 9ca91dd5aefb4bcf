import type { Instant } from '../clock.ts';
import { civilOf, DAY, dayOf, HOUR, isLeapYear, LAST_DAY, SECOND, weekdayOf } from './civil.ts';
import { isMetered, spendOnce } from './work-limit.ts';

/**
 * A stretch of time with one offset from UTC. `before` is the offset until `start`; it equals
 * `offset` unless the segment begins with a clock change.
 */
export interface Segment {
  readonly start: Instant;
  /** Exclusive. The next segment may have the same offset. */
  readonly end: Instant;
  /** Wall time minus UTC, in milliseconds. */
  readonly offset: number;
  readonly before: number;
}

/** A wall time in a zone: `gap` if it does not exist, `overlap` if it occurs twice. */
export interface ResolvedWall {
  /** The instant: in a gap, by the offset before the change; in an overlap, the first of the two. */
  readonly at: Instant;
  readonly kind: 'normal' | 'gap' | 'overlap';
  /** In an overlap, the second instant; null otherwise. */
  readonly again: Instant | null;
}

/** An upper bound of the distance of any zone from UTC (including the local mean times of 1900). */
export const MAX_OFFSET = 16 * HOUR;
/** An upper bound of all clock changes (Samoa skipped a whole day in 2011). */
export const MAX_SHIFT = 25 * HOUR;

/**
 * The distance at which zones are probed. No clock change was undone in less than 6.96 days
 * (northeast Brazil in October 2000, Gaza's Ramadan in years to come).
 */
const PROBE = 6 * DAY;
/** Segments are cached in chunks of 48 days. */
const CHUNK = 8 * PROBE;
const QUARTER = 15 * 60 * SECOND;
/** Chunks cached per zone: 105 years. */
const MAX_CHUNKS = 800;
/** No zone had a clock change before. */
const EARLIEST = Date.UTC(1800, 0, 1);
/**
 * From this year on, all changes follow yearly rules, so years of the same kind have the same changes. Changes that the
 * tz database lists one by one, such as Morocco's, end earlier.
 */
const FIRST_REGULAR_YEAR = 2100;
const REGULAR = Date.UTC(FIRST_REGULAR_YEAR, 0, 1);
/** The offset stays constant from here on. */
const LATEST = (LAST_DAY + 3) * DAY;

/** Cost of creating a zone and of probing a chunk, in work steps. */
const CREATION_COST = 20_000;
const CHUNK_PROBE_COST = 2300;
/** Cost of probing a kind of year and of reusing it for another year. */
const YEAR_PROBE_COST = 15_000;
const YEAR_REUSE_COST = 50;
/** Cost of probing one day in each month of a year. */
const MONTHS_PROBE_COST = 2000;

/** Legacy Java names that ICU accepts and the tz database lacks (`BST` would be Dhaka). */
const notIana = new Set(
  (
    'act aet agt art ast bet bst cat cnt cst ctt eat ect iet ist jst mit net nst plt pnt prt pst ' +
    'sst vst'
  ).split(' '),
);

/** A source of zone rules: the runtime's own unless {@link useTzDatabase} replaces it. */
export interface TzDatabase {
  /** The version as the maintainers name it (`2025c`), or `unknown`. */
  readonly version: string;
  /**
   * The rules of a zone: a function from an instant to wall time minus UTC, in milliseconds.
   * @throws RangeError for an unknown name
   */
  offsets(name: string): (instant: Instant) => number;
}

/** The wall clock of a zone by the tz database in use. The process's own zone never matters. */
export class Zone {
  /** The name as requested, so that messages spell the zone in the same way as the rule. */
  readonly name: string;
  /** Whether the zone is a fixed offset by its name (`UTC`, `Etc/GMT+3`). */
  readonly constant: boolean;
  readonly #offset: (instant: Instant) => number;
  readonly #chunks: Map<number, readonly Segment[]>;
  /** Segments of each regular year, and of each kind of year relative to its beginning. */
  readonly #years: Map<number, readonly Segment[]>;
  readonly #kinds: Map<number, readonly Segment[]>;
  readonly #months: Map<number, readonly number[]>;
  #last: Segment;

  /**
   * @param same the same zone in another spelling, to share its rules and caches
   * @throws RangeError for an unknown name; use `zoneOf`
   */
  constructor(name: string, same?: Zone) {
    this.name = name;
    this.constant = /^(?:etc\/.*|utc|uct|gmt.*|zulu|universal|greenwich)$/i.test(name);
    this.#offset = same === undefined ? database.offsets(name) : same.#offset;
    this.#chunks = same === undefined ? new Map() : same.#chunks;
    this.#years = same === undefined ? new Map() : same.#years;
    this.#kinds = same === undefined ? new Map() : same.#kinds;
    this.#months = same === undefined ? new Map() : same.#months;
    this.#last = { start: 0, end: 0, offset: 0, before: 0 };
  }

  /** The segment around an instant. */
  segmentAt(at: Instant): Segment {
    if (isMetered()) this.#spend(at);
    const last = this.#last;
    if (at >= last.start && at < last.end) return last;
    if (this.constant) return (this.#last = this.#whole());
    if (at < EARLIEST || at >= LATEST) return this.#outside(at < EARLIEST);
    for (const segment of at < REGULAR ? this.#chunk(at) : this.#year(at)) {
      if (at < segment.end) return (this.#last = segment);
    }
    throw new RangeError(`no offset of ${this.name} at ${at}`);
  }

  /** Wall time minus UTC at an instant, in milliseconds. */
  offsetAt(instant: Instant): number {
    return this.segmentAt(instant).offset;
  }

  /** The instant of a wall time, resolving clock changes. */
  resolve(wall: number): ResolvedWall {
    let segment = this.segmentAt(wall - MAX_OFFSET);
    while (wall - segment.offset >= segment.end) segment = this.segmentAt(segment.end);
    const at = wall - segment.offset;
    if (at < segment.start) return { at: wall - segment.before, kind: 'gap', again: null };
    const next = segment.end - at > MAX_SHIFT ? segment : this.segmentAt(segment.end);
    const again = wall - next.offset;
    const twice = again !== at && again >= next.start && again < next.end;
    return twice ? { at, kind: 'overlap', again } : { at, kind: 'normal', again: null };
  }

  /**
   * The distinct offsets since an instant, probed monthly. In every zone, an offset that lasts less than a month occurs
   * again.
   */
  offsetsSince(start: Instant): readonly number[] {
    if (this.constant) return [this.offsetAt(start)];
    const found = new Set<number>([this.offsetAt(start)]);
    const { year: first } = civilOf(Math.floor(Math.max(start, EARLIEST) / DAY));
    for (let year = Math.min(first, FIRST_REGULAR_YEAR); year <= FIRST_REGULAR_YEAR; year += 1) {
      spendOnce(this.#months, year, MONTHS_PROBE_COST);
      let offsets = this.#months.get(year);
      if (offsets === undefined) {
        const months = Array.from({ length: 13 }, (_, month) => dayOf(year, 1, 15) + month * 29);
        offsets = [...new Set(months.map((day) => this.#offset(day * DAY)))];
        this.#months.set(year, offsets);
      }
      for (const offset of offsets) found.add(offset);
    }
    return [...found];
  }

  /** An instant as wall time with its offset: `2026-03-29T03:30:00+02:00`; UTC as `+00:00`. */
  localText(instant: Instant): string {
    const offset = this.offsetAt(instant);
    const wall = new Date(instant + offset).toISOString();
    const text = wall.endsWith('.000Z') ? wall.slice(0, -5) : wall.slice(0, -1);
    return text + formatOffset(offset);
  }

  /** Charges the cost that a query would have without cached data. */
  #spend(at: Instant): void {
    if (this.constant || at < EARLIEST || at >= LATEST) return;
    if (at < REGULAR) {
      spendOnce(this.#chunks, Math.floor(at / CHUNK), CHUNK_PROBE_COST);
    } else {
      const { year } = civilOf(Math.floor(at / DAY));
      spendOnce(this.#kinds, kindOf(year), YEAR_PROBE_COST);
      spendOnce(this.#years, year, YEAR_REUSE_COST);
    }
  }

  #whole(): Segment {
    const offset = this.#offset(0);
    return { start: -Infinity, end: Infinity, offset, before: offset };
  }

  #outside(early: boolean): Segment {
    const { offset } = this.segmentAt(early ? EARLIEST : LATEST - 1);
    return early
      ? { start: -Infinity, end: EARLIEST, offset, before: offset }
      : { start: LATEST, end: Infinity, offset, before: offset };
  }

  #chunk(at: Instant): readonly Segment[] {
    const index = Math.floor(at / CHUNK);
    let segments = this.#chunks.get(index);
    if (segments === undefined) {
      segments = this.#probe(index * CHUNK, Math.min((index + 1) * CHUNK, REGULAR));
      if (this.#chunks.size >= MAX_CHUNKS) this.#chunks.clear();
      this.#chunks.set(index, segments);
    }
    return segments;
  }

  #year(at: Instant): readonly Segment[] {
    const { year } = civilOf(Math.floor(at / DAY));
    let segments = this.#years.get(year);
    if (segments === undefined) {
      const kind = kindOf(year);
      const from = Date.UTC(year, 0, 1);
      let regular = this.#kinds.get(kind);
      if (regular === undefined) {
        regular = this.#probe(from, Date.UTC(year + 1, 0, 1)).map((segment) =>
          moved(segment, -from),
        );
        this.#kinds.set(kind, regular);
      }
      segments = regular.map((segment) => moved(segment, from));
      if (this.#years.size >= MAX_CHUNKS) this.#years.clear();
      this.#years.set(year, segments);
    }
    return segments;
  }

  /** Finds the clock changes of a span. */
  #probe(start: Instant, end: Instant): readonly Segment[] {
    const segments: Segment[] = [];
    // Starts one step earlier to find a change shortly before the span.
    let from = start - PROBE;
    let offset = this.#offset(from);
    let before = offset;
    let probed = from;
    while (probed < end) {
      let low = probed;
      const at = Math.min(low + PROBE, end);
      probed = at;
      const found = this.#offset(at);
      while (offset !== found) {
        // Most clock changes happen at full quarters of an hour.
        let high = this.#change(low, at, offset, QUARTER);
        low = Math.max(low, high - QUARTER);
        if (this.#offset(high - SECOND) !== offset) high = this.#change(low, high, offset, SECOND);
        if (high > start) segments.push({ start: from, end: high, offset, before });
        before = offset;
        offset = this.#offset(high);
        from = low = high;
      }
    }
    if (from < end) segments.push({ start: from, end, offset, before });
    return segments;
  }

  /** The first instant in (from, to] whose offset differs, by bisection in steps of `unit`. */
  #change(from: Instant, to: Instant, offset: number, unit: number): Instant {
    let low = from;
    let high = to;
    while (high - low > unit) {
      const middle = low + Math.floor((high - low) / 2 / unit) * unit;
      if (this.#offset(middle) === offset) low = middle;
      else high = middle;
    }
    return high;
  }
}

/** Years of the same kind have the same weekdays, length and previous length. */
function kindOf(year: number): number {
  const weekday = weekdayOf(dayOf(year, 1, 1));
  return weekday * 4 + (isLeapYear(year) ? 2 : 0) + (isLeapYear(year - 1) ? 1 : 0);
}

function moved({ start, end, offset, before }: Segment, by: number): Segment {
  return { start: start + by, end: end + by, offset, before };
}

/** The runtime's tz database, through `Intl`; about 1.5 µs per call. */
function runtimeOffsets(name: string): (instant: Instant) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
  return (instant) => offsetIn(format, instant);
}

function offsetIn(format: Intl.DateTimeFormat, instant: Instant): number {
  // The day of the month and the time are sufficient, because local and UTC dates differ by at most
  // a day.
  const text = format.format(instant);
  const parts = [0, 0, 0, 0];
  let index = 0;
  let inNumber = false;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit >= 0 && digit <= 9) {
      parts[index] = (parts[index] ?? 0) * 10 + digit;
      inNumber = true;
    } else if (inNumber) {
      index++;
      inNumber = false;
    }
  }
  const [date = 0, hour = 0, minute = 0, second = 0] = parts;
  const day = Math.floor(instant / DAY);
  let days = date - civilOf(day).day;
  if (days > 15) days = -1;
  else if (days < -15) days = 1;
  const secondsOfDay = Math.floor((instant - day * DAY) / SECOND);
  return (days * 86_400 + hour * 3600 + minute * 60 + second - secondsOfDay) * SECOND;
}

const runtimeVersions = (globalThis as { process?: { versions?: { tz?: string } } }).process
  ?.versions;

const runtimeDatabase: TzDatabase = {
  version: runtimeVersions?.tz ?? 'unknown',
  offsets: runtimeOffsets,
};

let database = runtimeDatabase;

const zones = new Map<string, Zone>();
/** Charged once per zone; differs from every chunk number. */
const CREATION = Infinity;

/**
 * Replaces the tz database of this process; null restores the runtime's. Compiled schedules keep the old database, so
 * call this before any code computes fires.
 */
export function useTzDatabase(other: TzDatabase | null): void {
  database = other ?? runtimeDatabase;
  zones.clear();
}

/**
 * The cached zone of an IANA name in any case; null if unknown. Offsets (`+02:00`) are no names.
 */
export function zoneOf(name: string): Zone | null {
  // Case-insensitive, because a client could otherwise fill memory with spellings of one name.
  const key = name.toLowerCase();
  const kept = zones.get(key);
  if (kept !== undefined) {
    spendOnce(kept, CREATION, CREATION_COST);
    return kept.name === name ? kept : new Zone(name, kept);
  }
  if (!/^[a-z][a-z0-9_+/-]*$/.test(key) || notIana.has(key)) return null;
  try {
    const zone = new Zone(name);
    spendOnce(zone, CREATION, CREATION_COST);
    zones.set(key, zone);
    return zone;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** An offset as `+05:45`; seconds, which only local mean times have, follow as a third part. */
export function formatOffset(offset: number): string {
  const seconds = Math.abs(offset) / 1000;
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const tail = seconds % 60 === 0 ? '' : `:${two(seconds % 60)}`;
  return `${offset < 0 ? '-' : '+'}${two(seconds / 3600)}:${two((seconds / 60) % 60)}${tail}`;
}

/** The version of the tz database in use (`2025c`), or `unknown`. */
export function tzVersion(versions?: { readonly tz?: string }): string {
  return versions === undefined ? database.version : (versions.tz ?? 'unknown');
}
