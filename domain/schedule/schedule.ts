import type { Instant } from '../clock.ts';
import type { ScheduleKind } from '../vocabulary.ts';
import { BoundedCache } from './bounded-cache.ts';
import { LAST_INSTANT } from './civil.ts';
import { wallNote } from './clock-notes.ts';
import { compileCron } from './cron.ts';
import { BoundedFires, SingleFire, type FireSource } from './fire-sets.ts';
import { compileRrule } from './rrule/rrule.ts';
import { needsCounting, rruleWarnings } from './rrule/rrule-warnings.ts';
import { expressionError, ScheduleError } from './schedule-error.ts';
import { parseTimestamp, resolveTimestamp, TimestampError } from './timestamp.ts';
import { compileTopicPattern } from './topic-pattern.ts';
import { ZonedFires } from './zoned-fires.ts';
import { limitWork, WorkLimitError } from './work-limit.ts';
import { unknownZoneMessage } from './zone-names.ts';
import { zoneOf, type Zone } from './zone.ts';

export { ScheduleError };

/** The most work steps for compiling a rule, about 13 ms. */
export const MAX_COMPILE_STEPS = 1_300_000;

/** The most work steps of finding one task's warnings for a list, about 2 ms. */
const MAX_WARNING_STEPS = 200_000;

/** The input of {@link compileSchedule}. */
export interface ScheduleSpec {
  readonly kind: ScheduleKind;
  /** Required for every kind but `event`. */
  readonly expr: string | null;
  /** An IANA name, or `UTC`. */
  readonly timezone: string;
  /** When the expression was last set; an rrule takes missing parts from it, to the second. */
  readonly anchor: Instant;
  /** No fire before it. */
  readonly startsAt: Instant | null;
  /** No fire after it. */
  readonly endsAt: Instant | null;
}

/** An instant at which a schedule fires. */
export interface Fire {
  readonly at: Instant;
  /** The wall time in the rule's zone with its offset, in ISO 8601. Computed on access. */
  readonly local: string;
  /** How a clock change affected it or times before it; null if not. Computed on access. */
  readonly note: string | null;
}

/** The number of fires in a span, with the first and the last. */
export interface FireCount {
  readonly count: number;
  readonly first: Instant | null;
  readonly last: Instant | null;
}

/** The fires of a task. Pure: an answer does not depend on earlier queries. */
export interface Schedule {
  /** The first fire strictly after an instant; null if there is none. */
  next(after: Instant): Fire | null;
  /** Up to `count` fires strictly after an instant, in order. */
  upcoming(after: Instant, count: number): readonly Fire[];
  /** The last fire strictly before an instant; null if there is none. */
  previous(before: Instant): Fire | null;
  /** The fires in (after, upTo]. Counted arithmetically, not one by one. */
  countBetween(after: Instant, upTo: Instant): FireCount;
  /** Warnings about effects that the author may not have intended. */
  readonly warnings: readonly string[];
}

/**
 * Compiles a task's schedule. One of kind `event` never fires by time, but its pattern is checked. A rule without fires
 * compiles too; its `next` is null.
 * @throws ScheduleError naming the field and its fault
 */
export function compileSchedule(spec: ScheduleSpec): Schedule {
  const zone = zoneOf(spec.timezone);
  if (zone === null) {
    throw new ScheduleError('timezone', unknownZoneMessage(spec.timezone));
  }
  if (spec.startsAt !== null && spec.endsAt !== null && spec.startsAt > spec.endsAt) {
    throw new ScheduleError('ends_at', 'is before starts_at');
  }
  const compiled = compileWithin(spec, zone);
  const endsAt = Math.min(spec.endsAt ?? LAST_INSTANT, LAST_INSTANT);
  const fires = new BoundedFires(compiled.fires, spec.startsAt, endsAt);
  return new CompiledSchedule(fires, compiled.zone, compiled.warnings);
}

/** Warnings by rule and by all other inputs, cached because task lists show them for each task. */
const cache = new BoundedCache<readonly string[]>(2000);

/**
 * The warnings of a schedule, as {@link Schedule.warnings}, without compiling it if possible.
 * Leaves out warnings that take too much counting. An invalid rule has none.
 * @param maxSteps work steps to spend on counting
 */
export function scheduleWarnings(
  spec: ScheduleSpec,
  maxSteps = MAX_WARNING_STEPS,
): readonly string[] {
  const { kind, expr, timezone, anchor, startsAt } = spec;
  if (kind !== 'rrule' || expr === null) return [];
  const key = JSON.stringify([expr, timezone, anchor, startsAt]);
  return cache.get(key, () => findWarnings(spec, expr, maxSteps));
}

function findWarnings(spec: ScheduleSpec, expr: string, maxSteps: number): readonly string[] {
  const zone = zoneOf(spec.timezone);
  if (zone === null) return [];
  try {
    return needsCounting(expr)
      ? limitWork(maxSteps, () => compileRrule(expr, zone, spec).warnings)
      : rruleWarnings(expr, zone);
  } catch (error) {
    if (error instanceof WorkLimitError) return rruleWarnings(expr, zone);
    if (error instanceof ScheduleError) return [];
    throw error;
  }
}

interface CompiledKind {
  readonly fires: FireSource;
  readonly zone: Zone;
  readonly warnings: readonly string[];
}

function compileWithin(spec: ScheduleSpec, zone: Zone): CompiledKind {
  try {
    return limitWork(MAX_COMPILE_STEPS, () => compileKind(spec, zone));
  } catch (error) {
    if (!(error instanceof WorkLimitError)) throw error;
    throw expressionError(
      'takes too long to evaluate because it fires too rarely or names times in too many years or zones',
    );
  }
}

function compileKind(spec: ScheduleSpec, zone: Zone): CompiledKind {
  if (spec.kind === 'event') {
    compileTopicPattern(spec.expr);
    return { fires: new SingleFire(null, null), zone, warnings: [] };
  }
  const expr = spec.expr;
  if (expr === null || expr.trim() === '') {
    throw expressionError(`is required for a schedule of kind ${spec.kind}`);
  }
  switch (spec.kind) {
    case 'cron': {
      const { rule, elapsed } = compileCron(expr);
      return { fires: new ZonedFires(rule, zone, elapsed), zone, warnings: [] };
    }
    case 'rrule':
      return compileRrule(expr, zone, spec);
    case 'once':
      return { fires: compileOnce(expr, zone), zone, warnings: [] };
  }
}

function compileOnce(expr: string, zone: Zone): FireSource {
  try {
    const resolved = resolveTimestamp(expr, zone.name);
    const { at } = resolved;
    if (at > LAST_INSTANT)
      throw new TimestampError(`"${expr.trim()}" is after the year 9999 in UTC`);
    if (at + zone.offsetAt(at) > LAST_INSTANT)
      throw new TimestampError(`"${expr.trim()}" is after the year 9999 in ${zone.name}`);
    return new SingleFire(at, wallNote(parseTimestamp(expr).wall, zone, resolved));
  } catch (error) {
    if (error instanceof TimestampError) throw expressionError(error.message);
    throw error;
  }
}

class CompiledSchedule implements Schedule {
  readonly warnings: readonly string[];
  readonly #fires: FireSource;
  readonly #zone: Zone;

  constructor(fires: FireSource, zone: Zone, warnings: readonly string[]) {
    this.#fires = fires;
    this.#zone = zone;
    this.warnings = warnings;
  }

  next(after: Instant): Fire | null {
    return this.#fire(this.#fires.next(Math.floor(after) + 1));
  }

  upcoming(after: Instant, count: number): readonly Fire[] {
    const found: Fire[] = [];
    let fire = count > 0 ? this.next(after) : null;
    while (fire !== null) {
      found.push(fire);
      fire = found.length < count ? this.next(fire.at) : null;
    }
    return found;
  }

  previous(before: Instant): Fire | null {
    return this.#fire(this.#fires.previous(Math.ceil(before) - 1));
  }

  countBetween(after: Instant, upTo: Instant): FireCount {
    const from = Math.floor(after) + 1;
    const to = Math.floor(upTo) + 1;
    const first = this.#fires.next(from);
    if (first === null || first >= to) return { count: 0, first: null, last: null };
    const last = this.#fires.previous(to - 1);
    // Counts only between the first and the last fire, so empty years cost nothing.
    return { count: this.#fires.count(first, (last ?? first) + 1), first, last };
  }

  #fire(at: Instant | null): Fire | null {
    return at === null ? null : new ScheduledFire(at, this.#fires, this.#zone);
  }
}

/**
 * Computes its strings on access, because the scheduler reads only `at`. It is a class, because
 * Node keeps an object literal with a getter, and all that the getter refers to, until a full
 * garbage collection.
 */
class ScheduledFire implements Fire {
  readonly at: Instant;
  readonly #fires: FireSource;
  readonly #zone: Zone;

  constructor(at: Instant, fires: FireSource, zone: Zone) {
    this.at = at;
    this.#fires = fires;
    this.#zone = zone;
  }

  get local(): string {
    return this.#zone.localText(this.at);
  }

  get note(): string | null {
    return this.#fires.note(this.at);
  }
}
