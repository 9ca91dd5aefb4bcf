import type { Instant } from '../../clock.ts';
import { civilOf, DAY, SECOND } from '../civil.ts';
import { movedNote, wallNote } from '../clock-notes.ts';
import { AmendedFires, BoundedFires, type FireSource, type Span } from '../fire-sets.ts';
import { expressionError } from '../schedule-error.ts';
import { elapsedFires, isElapsed } from './elapsed-rule.ts';
import { CountTooLargeError, lastOfCount, lastOfElapsed, MAX_COUNT } from './rrule-count.ts';
import { parseRruleParts, type RruleParts } from './rrule-parts.ts';
import { createRruleRule } from './wall-rules.ts';
import { parseRecurrence, type IcalTime } from './recurrence.ts';
import { firesBeforeStart, COUNT_TOO_LARGE, uselessExdates, warningsOf } from './rrule-warnings.ts';
import type { Zone } from '../zone.ts';
import { ZonedFires } from '../zoned-fires.ts';

/** A compiled RFC 5545 recurrence. */
export interface CompiledRrule {
  readonly fires: FireSource;
  /** DTSTART's own zone, or the task's zone if there is none. */
  readonly zone: Zone;
  readonly warnings: readonly string[];
}

/** The parts of its task's schedule that a recurrence needs. */
export interface RruleBounds {
  /** Replaces a missing DTSTART. */
  readonly anchor: Instant;
  /** Fires before it count for COUNT but do not run; null for no bound. */
  readonly startsAt: Instant | null;
}

/**
 * Compiles an RFC 5545 recurrence: an RRULE with optional DTSTART, EXDATE and RDATE. Without DTSTART, it starts at the
 * anchor, truncated to the second.
 *
 * - COUNT counts the rule's fires from its start, including those that EXDATE removes. RDATE adds fires regardless of
 *   COUNT and UNTIL. A COUNT that is too large to count is ignored.
 * - UNTIL and EXDATE without a time of day mean the whole day; RDATE means midnight.
 * @param taskZone the zone of all times that have no zone
 * @throws ScheduleError naming the invalid part, or saying why the rule cannot be evaluated
 */
export function compileRrule(
  expr: string,
  taskZone: Zone,
  { anchor, startsAt }: RruleBounds,
): CompiledRrule {
  const text = parseRecurrence(expr);
  const parts = parseRruleParts(text.rule);
  const warnings = [...warningsOf(text, parts, taskZone)];
  const zone = text.dtstart?.zone ?? taskZone;
  const anchorSecond = Math.floor(anchor / SECOND) * SECOND;
  const start = text.dtstart?.wall ?? anchorSecond + zone.offsetAt(anchorSecond);
  const dtstart = text.dtstart === null ? null : zone.resolve(start);
  const startInstant = dtstart?.at ?? anchorSecond;
  const { source, lastOf } = sourceOf(parts, zone, start, startInstant);
  const counted =
    parts.count === null ? null : countedEnd(parts.count, lastOf, { startInstant, anchor });
  if (parts.count !== null && counted === null) warnings.push(COUNT_TOO_LARGE);
  const last = parts.until === null ? (counted?.last ?? null) : untilInstant(parts.until, zone);
  const bounded = new BoundedFires(source, startInstant, last);
  if (counted !== null && parts.count !== null && startsAt !== null && startsAt > startInstant) {
    warnings.push(...firesBeforeStart(startsAt, startInstant, bounded, parts.count));
  }
  const excluded = text.exdates.map((time) => excludedSpans(time, zone));
  const added = text.rdates.map((time) => {
    const ownZone = time.zone ?? zone;
    const resolved = ownZone.resolve(time.wall);
    return { at: resolved.at, note: wallNote(time.wall, ownZone, resolved) };
  });
  const notes = new Map<Instant, string>();
  if (dtstart?.kind === 'gap') notes.set(dtstart.at, movedNote(start, zone, dtstart.at));
  for (const { at, note } of added) if (note !== null) notes.set(at, note);
  if (excluded.length + added.length + notes.size === 0) return { fires: bounded, zone, warnings };
  const times = added.map(({ at }) => at);
  warnings.push(...uselessExdates(text.exdates, excluded, bounded, times));
  return { fires: new AmendedFires(bounded, excluded.flat(), times, notes), zone, warnings };
}

/** A rule's fires, ignoring COUNT and UNTIL. */
interface Source {
  readonly source: FireSource;
  /** The instant of the COUNT-th fire; null if there are fewer. @throws CountTooLargeError */
  readonly lastOf: (count: number) => Instant | null;
}

function sourceOf(parts: RruleParts, zone: Zone, start: number, startInstant: Instant): Source {
  if (isElapsed(parts)) {
    const source = elapsedFires(parts, { zone, wall: start, instant: startInstant });
    return { source, lastOf: (count) => lastOfElapsed(source, startInstant, count) };
  }
  const bare = createRruleRule(parts, start, start);
  const source = new ZonedFires(bare.rule, zone, false);
  // Computed on demand, because it costs as much as parsing and most rules have no COUNT.
  const lastOf = (count: number): Instant | null =>
    lastOfCount({ ...bare, zoned: source, zone, start, startInstant }, count);
  return { source, lastOf };
}

/**
 * The end of a COUNT; null if COUNT is too large to count, which means it is ignored.
 * @throws ScheduleError if counting does not reach the time at which the rule was set. COUNT may then be used up
 */
function countedEnd(
  count: number,
  lastOf: (count: number) => Instant | null,
  { startInstant, anchor }: { readonly startInstant: Instant; readonly anchor: Instant },
): { readonly last: Instant | null } | null {
  if (count > MAX_COUNT) return null;
  try {
    return { last: lastOf(count) };
  } catch (error) {
    if (!(error instanceof CountTooLargeError)) throw error;
    if (error.reached > Math.max(startInstant, anchor)) return null;
    const { year } = civilOf(Math.floor(error.reached / DAY));
    throw expressionError(
      `COUNT=${count} takes too long to count (${error.found} fires by ${year}); ` +
        `remove it or set UNTIL`,
    );
  }
}

/** The last instant that UNTIL allows. */
function untilInstant(until: IcalTime, zone: Zone): Instant {
  const ownZone = until.zone ?? zone;
  return until.dateOnly ? ownZone.resolve(until.wall + DAY).at - 1 : ownZone.resolve(until.wall).at;
}

/** The spans that an EXDATE removes: an instant (both, if it occurs twice) or a whole day. */
function excludedSpans(time: IcalTime, zone: Zone): Span[] {
  const ownZone = time.zone ?? zone;
  const { at, again } = ownZone.resolve(time.wall);
  if (time.dateOnly) return [{ from: at, to: ownZone.resolve(time.wall + DAY).at }];
  const spans = [{ from: at, to: at + 1 }];
  if (again !== null) spans.push({ from: again, to: again + 1 });
  return spans;
}
