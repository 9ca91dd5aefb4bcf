import type { Instant } from '../clock.ts';
import type { ScheduleKind } from '../vocabulary.ts';
import { LAST_INSTANT } from './civil.ts';
import { singleNote } from './clock-notes.ts';
import { compileCron } from './cron.ts';
import { BoundedFires, Once } from './fire-sets.ts';
import { compileRrule } from './rrule/rrule.ts';
import { needsCounting, rruleWarnings } from './rrule/rrule-warnings.ts';
import { ScheduleError } from './schedule-error.ts';
import { readTimestamp, resolveTimestamp, TimestampError } from './timestamp.ts';
import { compileTopicPattern } from './topic-pattern.ts';
import { ZonedFires, type FireSource } from './zoned-fires.ts';
import { limitWork, WorkExceeded } from './work.ts';
import { unknownZone } from './zone-names.ts';
import { zoneOf, type Zone } from './zone.ts';

export { ScheduleError };

/**
 * Most steps of work that compiling a rule may take: about 8 ms. Questions to what was compiled take less than
 * {@link MOST_STEPS_OF_ANSWER}, whatever the rule.
 */
export const MOST_STEPS = 800_000;

/** Most steps of work to find out what a list of tasks warns of: about 2 ms. */
const MOST_STEPS_OF_WARNINGS = 200_000;

/** Most steps of work of one answer: about 8 ms. A count through clock changes takes as much for every forty years. */
export const MOST_STEPS_OF_ANSWER = 800_000;

/** What a rule is compiled from. */
export interface ScheduleSpec {
  readonly kind: ScheduleKind;
  /** Required for every kind but `event`. */
  readonly expr: string | null;
  /** An IANA name, or `UTC`. */
  readonly timezone: string;
  /** The moment the expression was last set; what an rrule leaves out comes from it, cut to the second. */
  readonly anchor: Instant;
  /** No fire before it. */
  readonly startsAt: Instant | null;
  /** No fire after it. */
  readonly endsAt: Instant | null;
}

/** One moment at which a schedule fires. */
export interface Fire {
  readonly at: Instant;
  /** The wall time of the rule's zone with its offset, ISO 8601. */
  readonly local: string;
  /** What a clock change did to it, or left out before it; null when it did nothing. Worked out when it is read. */
  readonly note: string | null;
}

/** How many fires a span holds, and which are its ends. */
export interface FireCount {
  readonly count: number;
  readonly first: Instant | null;
  readonly last: Instant | null;
}

/** When a task fires. Pure: the same questions have the same answers, whatever was asked before. */
export interface Schedule {
  /** The first fire strictly after an instant; null when there never is one. */
  next(after: Instant): Fire | null;
  /** Up to `count` fires strictly after an instant, in order. */
  upcoming(after: Instant, count: number): readonly Fire[];
  /** The last fire strictly before an instant; null when there is none. */
  previous(before: Instant): Fire | null;
  /** How many fires are in (after, upTo], and the first and last of them; counted, not gone through. */
  countBetween(after: Instant, upTo: Instant): FireCount;
  /** What the author of the rule may not have meant. */
  readonly warnings: readonly string[];
}

/**
 * Compiles a task's rule. A schedule of kind `event` never fires by time; its pattern is checked. A
 * rule that never fires is compiled too: its `next` is null.
 * @throws ScheduleError naming the field and what is wrong in it.
 */
export function compileSchedule(spec: ScheduleSpec): Schedule {
  const zone = zoneOf(spec.timezone);
  if (zone === null) {
    throw new ScheduleError('timezone', unknownZone(spec.timezone));
  }
  if (spec.startsAt !== null && spec.endsAt !== null && spec.startsAt > spec.endsAt) {
    throw new ScheduleError('ends_at', 'lies before starts_at');
  }
  const compiled = compileWithin(spec, zone);
  const endsAt = Math.min(spec.endsAt ?? LAST_INSTANT, LAST_INSTANT);
  const fires = new BoundedFires(compiled.fires, spec.startsAt, endsAt);
  return new CompiledSchedule(fires, compiled.zone, compiled.warnings);
}

/** What a rule warns of, by all that it depends on: a list of tasks shows it of each. */
const MOST_KEPT = 2000;
const kept = new Map<string, readonly string[]>();

/**
 * What the author of a rule may not have meant, as {@link Schedule.warnings} has it, at a small part of the cost of
 * compiling. What takes more counting is left out, and a rule that can't be understood has no warnings: compiling
 * tells of it.
 * @param most steps of work of counting
 */
export function scheduleWarnings(
  spec: ScheduleSpec,
  most = MOST_STEPS_OF_WARNINGS,
): readonly string[] {
  const { kind, expr, timezone, anchor, startsAt } = spec;
  // Rules of other kinds have one meaning only.
  if (kind !== 'rrule' || expr === null) return [];
  const key = JSON.stringify([expr, timezone, anchor, startsAt]);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const found = findWarnings(spec, expr, most);
  if (kept.size >= MOST_KEPT) {
    const [oldest] = kept.keys();
    if (oldest !== undefined) kept.delete(oldest);
  }
  kept.set(key, found);
  return found;
}

function findWarnings(spec: ScheduleSpec, expr: string, most: number): readonly string[] {
  const zone = zoneOf(spec.timezone);
  if (zone === null) return [];
  try {
    return needsCounting(expr)
      ? limitWork(most, () => compileRrule(expr, { ...spec, zone }).warnings)
      : rruleWarnings(expr, zone);
  } catch (error) {
    if (error instanceof WorkExceeded) return rruleWarnings(expr, zone);
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
    return limitWork(MOST_STEPS, () => compileKind(spec, zone));
  } catch (error) {
    if (!(error instanceof WorkExceeded)) throw error;
    throw new ScheduleError(
      'schedule_expr',
      'takes too long to evaluate: it hardly ever fires, or names times in too many different years or zones',
    );
  }
}

function compileKind(spec: ScheduleSpec, zone: Zone): CompiledKind {
  if (spec.kind === 'event') {
    compileTopicPattern(spec.expr);
    return { fires: new Once(null, null), zone, warnings: [] };
  }
  const expr = spec.expr;
  if (expr === null || expr.trim() === '') {
    throw new ScheduleError('schedule_expr', `is required for a schedule of kind ${spec.kind}`);
  }
  switch (spec.kind) {
    case 'cron': {
      const { rule, elapsed } = compileCron(expr);
      return { fires: new ZonedFires(rule, zone, elapsed), zone, warnings: [] };
    }
    case 'rrule':
      return compileRrule(expr, { ...spec, zone });
    case 'once':
      return { fires: compileOnce(expr, zone), zone, warnings: [] };
  }
}

function compileOnce(expr: string, zone: Zone): FireSource {
  try {
    const resolved = resolveTimestamp(expr, zone.name);
    const { at } = resolved;
    if (at > LAST_INSTANT)
      throw new TimestampError(`"${expr.trim()}" lies after the year 9999 in UTC`);
    if (at + zone.offsetAt(at) > LAST_INSTANT)
      throw new TimestampError(`"${expr.trim()}" lies after the year 9999 in ${zone.name}`);
    return new Once(at, singleNote(readTimestamp(expr).wall, zone, resolved));
  } catch (error) {
    if (error instanceof TimestampError) throw new ScheduleError('schedule_expr', error.message);
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
    // Between the ends alone: spans of the calendar without any fire cost nothing.
    return { count: this.#fires.count(first, (last ?? first) + 1), first, last };
  }

  #fire(at: Instant | null): Fire | null {
    if (at === null) return null;
    const fires = this.#fires;
    return {
      at,
      local: this.#zone.localText(at),
      // Deciding fires never asks for it, and it takes a look at the fire before.
      get note() {
        return fires.note(at);
      },
    };
  }
}
